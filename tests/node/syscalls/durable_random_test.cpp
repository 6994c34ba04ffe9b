// Random operations on a folder, reported to the image and to the reference model; after each power loss both must say
// the same. Seeds are fixed: a failure prints the one to run again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/random.hpp"
#include "durable_fixture.hpp"
#include "durable_reference.hpp"

namespace leafcutter::node::tests {
namespace {

constexpr std::uint64_t durable_sequences = 400;
constexpr int durable_steps = 120;

/// One sequence; its log is what a failure shows.
class DurableSequence {
 public:
  DurableSequence(std::uint64_t seed, DurableImage::Capture capture) : random_(seed, "durable", 0), capture_(capture) {}

  /// Empty when image and model agreed throughout.
  std::string run();

 private:
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  std::string any(char kind);  ///< an existing path; "" when there is none
  std::string any_folder() { return below(3) == 0 ? "." : any('d').empty() ? "." : any('d'); }
  std::string some_path();  ///< in an existing folder, taken or not
  std::string real(const std::string& path) const { return scratch_ / path; }
  void tell(const std::string& what, const std::string& a = "", const std::string& b = "") {
    log_ += what + " " + a + " " + b + "\n";
  }
  void need(bool done, const std::string& what) {
    if (!done && failure_.empty()) failure_ = what;
  }
  void need(const base::Status& done) {
    if (!done) need(false, done.error().text());
  }

  void start();
  void act();
  void change_names();
  void change_bytes();
  void report();
  void report_file();
  void lose_power();
  void announce(const std::string& path) {
    if (capture_ == DurableImage::Capture::before_change && image_) need(image_->about_to_change(path));
  }
  void create(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  void write(const std::string& path);

  base::Stream random_;
  DurableImage::Capture capture_;
  DurableScratch scratch_;
  ReferenceFolder model_;
  std::optional<DurableImage> image_;
  std::string log_, failure_;
  int fill_ = 0;
};

std::string DurableSequence::any(char kind) {
  const auto paths = model_.paths(kind);
  return paths.empty() ? "" : paths[below(paths.size())];
}

std::string DurableSequence::some_path() {
  const auto folder = any_folder();
  const auto name = std::string(1, static_cast<char>('a' + below(5)));
  return folder == "." ? name : folder + "/" + name;
}

void DurableSequence::create(const std::string& path) {
  if (model_.has(path)) return;
  switch (below(5)) {
    case 0:
      need(::mkdir(real(path).c_str(), 0755) == 0, "mkdir");
      model_.create(path, {'d', 0755, ""});
      return tell("mkdir", path);
    case 1:
      need(::symlink("target", real(path).c_str()) == 0, "symlink");
      model_.create(path, {'l', 0, "target"});
      return tell("symlink", path);
    default:
      need(bool(base::UniqueFd(::open(real(path).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644))), "create");
      model_.create(path, {'f', 0644, ""});
      return tell("create", path);
  }
}

void DurableSequence::rename(const std::string& from, const std::string& to) {
  if (from.empty() || to == from || to.starts_with(from + "/") || from.starts_with(to + "/")) return;
  const auto is_folder = model_.at(from).kind == 'd';
  if (model_.has(to)) {
    const auto target = model_.at(to).kind;
    if (is_folder != (target == 'd')) return;
    if (is_folder)
      for (const auto kind : {'f', 'd', 'l'})
        for (const auto& path : model_.paths(kind))
          if (path.starts_with(to + "/")) return;  // not empty
    if (target == 'f') announce(to);
  }
  need(::rename(real(from).c_str(), real(to).c_str()) == 0, "rename");
  model_.rename(from, to);
  tell("rename", from, to);
}

void DurableSequence::change_names() {
  switch (below(7)) {
    case 0:
    case 1: return create(some_path());
    case 5: {
      const auto a = any('f'), b = any(below(3) == 0 ? 'l' : 'f');
      if (a.empty() || b.empty()) return;
      need(::renameat2(AT_FDCWD, real(a).c_str(), AT_FDCWD, real(b).c_str(), RENAME_EXCHANGE) == 0, "exchange");
      model_.exchange(a, b);
      return tell("exchange", a, b);
    }
    case 2: {
      const char kinds[] = {'f', 'f', 'd', 'l'};
      return rename(any(kinds[below(4)]), some_path());
    }
    case 3: {
      const auto path = any('f');
      if (path.empty()) return;
      announce(path);
      need(::unlink(real(path).c_str()) == 0, "unlink");
      model_.remove(path);
      return tell("unlink", path);
    }
    case 4: {
      const auto path = any('d');
      if (path.empty() || ::rmdir(real(path).c_str()) != 0) return;
      model_.remove(path);
      return tell("rmdir", path);
    }
    default: {
      const auto from = any('f'), to = some_path();
      if (from.empty() || model_.has(to)) return;
      need(::link(real(from).c_str(), real(to).c_str()) == 0, "link");
      model_.link(from, to);
      return tell("link", from, to);
    }
  }
}

void DurableSequence::write(const std::string& path) {
  auto& bytes = model_.at(path).bytes;
  const auto at = below(bytes.size() + 5000), count = 1 + below(9000);
  std::string piece;
  for (++fill_; piece.size() < count;) piece += std::to_string(fill_) + ",";
  piece.resize(count);
  if (bytes.size() < at + count) bytes.resize(at + count, '\0');
  bytes.replace(at, count, piece);
  const base::UniqueFd fd(::open(real(path).c_str(), O_WRONLY | O_CLOEXEC));
  need(::pwrite(fd.get(), piece.data(), count, static_cast<off_t>(at)) == static_cast<ssize_t>(count), "write");
  tell("write", path, std::to_string(at) + "+" + std::to_string(count));
}

void DurableSequence::change_bytes() {
  const auto path = any('f');
  if (path.empty()) return;
  announce(path);
  switch (below(6)) {
    case 0: {
      const auto size = below(20000);
      need(::truncate(real(path).c_str(), static_cast<off_t>(size)) == 0, "truncate");
      model_.at(path).bytes.resize(size, '\0');
      return tell("truncate", path, std::to_string(size));
    }
    case 1: {
      const unsigned mode = below(2) == 0 ? 0600 : 0644;
      need(::chmod(real(path).c_str(), mode) == 0, "chmod");
      model_.at(path).mode = mode;
      return tell("chmod", path);
    }
    default: return write(path);
  }
}

void DurableSequence::report_file() {
  const auto path = any('f');
  if (path.empty()) return;
  const auto offset = below(16000), length = 1 + below(9000);
  const auto range = std::to_string(offset) + "+" + std::to_string(length);
  switch (below(8)) {
    case 0:
      need(image_->written(path, offset, length, true));
      model_.written(path, offset, length);
      return tell("written", path, range);
    case 1:
      need(image_->synced_range(path, offset, length));
      model_.synced_range(path, offset, length);
      return tell("synced_range", path, range);
    case 2:
      if (const auto dropped = image_->sync_failed(path); !dropped) need(dropped.error());
      model_.sync_failed(path);
      return tell("sync_failed", path);
    case 3: image_->lied(path); return tell("lied", path);
    default: {
      const auto data_only = below(2) == 0;
      if (below(2) == 0) {
        const base::UniqueFd fd(::open(real(path).c_str(), O_WRONLY | O_CLOEXEC));
        need(image_->synced(fd.get(), data_only));
      } else {
        need(image_->synced(path, data_only));
      }
      model_.synced(path, data_only);
      return tell(data_only ? "fdatasync" : "fsync", path);
    }
  }
}

void DurableSequence::report() {
  if (below(4) > 0) return report_file();
  if (below(10) == 0) {
    need(image_->synced_all());
    model_.synced_all();
    return tell("sync");
  }
  const auto path = any_folder();
  need(image_->synced(path));
  model_.synced(path, false);
  tell("fsync folder", path);
}

void DurableSequence::lose_power() {
  tell("power loss");
  auto lost = image_->power_loss();
  if (!lost) return need(false, lost.error().text());
  need(lost->unannounced.empty(), lost->text());
  model_.power_loss();
  const auto found = picture(scratch_.data()), wanted = model_.picture();
  if (found == wanted) return;
  std::string text = "found:\n";
  for (const auto& [path, what] : found) text += "  " + path + ": " + what + "\n";
  text += "wanted:\n";
  for (const auto& [path, what] : wanted) text += "  " + path + ": " + what + "\n";
  need(false, text);
}

void DurableSequence::start() {
  for (int i = 0; i < 20; ++i) below(2) == 0 ? change_names() : change_bytes();
  auto made = DurableImage::create(scratch_.data(), scratch_.image(), capture_);
  if (!made) return need(false, made.error().text());
  image_.emplace(std::move(*made));
  model_.everything_durable();
  tell("start");
}

void DurableSequence::act() {
  const auto choice = below(100);
  if (choice < 40)
    change_names();
  else if (choice < 70)
    change_bytes();
  else if (choice < 97)
    report();
  else
    lose_power();
}

std::string DurableSequence::run() {
  start();
  for (int i = 0; i < durable_steps && failure_.empty(); ++i) act();
  if (failure_.empty()) lose_power();
  return failure_.empty() ? "" : log_ + failure_;
}

TEST(DurableRandom, AgreesWithTheReferenceModel) {
  for (std::uint64_t seed = 1; seed <= durable_sequences; ++seed)
    for (const auto capture : {DurableImage::Capture::at_start, DurableImage::Capture::before_change})
      ASSERT_EQ(DurableSequence(seed, capture).run(), "")
          << "seed " << seed << (capture == DurableImage::Capture::at_start ? ", at_start" : ", before_change");
}

}  // namespace
}  // namespace leafcutter::node::tests
