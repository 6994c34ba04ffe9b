#include "durable_fixture.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "base/random.hpp"
#include "base/text.hpp"

namespace leafcutter::node::tests {

namespace fs = std::filesystem;

DurableScratch::DurableScratch(const std::string& parent) : folder_(parent) { fs::create_directory(data()); }

std::string DurableScratch::memory() { return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : disk(); }
std::string DurableScratch::disk() { return fs::temp_directory_path().string(); }

std::string picture_of_bytes(const std::string& bytes) {
  std::ostringstream text;
  text << bytes.size() << ":";
  if (bytes.size() <= 64)
    text << bytes;
  else
    text << std::hex << base::fnv1a(bytes);
  return text.str();
}

FolderPicture picture(const std::string& folder) {
  FolderPicture out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) != 0) throw std::runtime_error("lstat " + entry.path().string());
    std::ostringstream text;
    const auto mode = [&] {
      text << std::oct << std::setw(4) << std::setfill('0') << (status.st_mode & 07777) << std::dec;
    };
    if (S_ISLNK(status.st_mode)) {
      text << "link -> " << fs::read_symlink(entry.path()).string();
    } else if (S_ISDIR(status.st_mode)) {
      text << "folder ";
      mode();
    } else if (S_ISREG(status.st_mode)) {
      const auto bytes = base::read_file(entry.path().string());
      text << "file ";
      mode();
      text << " x" << status.st_nlink << " " << picture_of_bytes(*bytes);
    } else {
      text << "other";
    }
    out[fs::relative(entry.path(), folder).string()] = text.str();
  }
  return out;
}

void DurableTest::start(DurableImage::Capture capture) {
  auto made = DurableImage::create(scratch.data(), scratch.image(), capture);
  ASSERT_TRUE(made) << made.error().text();
  image.emplace(std::move(*made));
}

base::UniqueFd DurableTest::open(const std::string& name, int flags) const {
  base::UniqueFd fd(::open((scratch / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644));
  EXPECT_TRUE(fd) << name << ": " << std::strerror(errno);
  return fd;
}

void DurableTest::write(const std::string& name, const std::string& bytes) const {
  const auto fd = open(name, O_TRUNC);
  EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
}

void DurableTest::put(const std::string& name, std::uint64_t at, const std::string& bytes) const {
  const auto fd = open(name);
  EXPECT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)), static_cast<ssize_t>(bytes.size()));
}

std::string DurableTest::read(const std::string& name) const {
  const auto bytes = base::read_file(scratch / name);
  return bytes ? *bytes : "<none>";
}

void DurableTest::move(const std::string& from, const std::string& to) const {
  EXPECT_EQ(::rename((scratch / from).c_str(), (scratch / to).c_str()), 0) << from << ": " << std::strerror(errno);
}

void DurableTest::remove(const std::string& name) const {
  EXPECT_EQ(::remove((scratch / name).c_str()), 0) << name << ": " << std::strerror(errno);
}

void DurableTest::folder(const std::string& name) const {
  EXPECT_EQ(::mkdir((scratch / name).c_str(), 0755), 0) << name << ": " << std::strerror(errno);
}

bool DurableTest::there(const std::string& name) const {
  struct stat status {};
  return ::lstat((scratch / name).c_str(), &status) == 0;
}

void DurableTest::sync(const DataFile& file, bool data_only) {
  const auto synced = image->synced(file, data_only);
  EXPECT_TRUE(synced) << synced.error().text();
}

PowerLoss DurableTest::lose_power() {
  auto lost = image->power_loss();
  EXPECT_TRUE(lost) << lost.error().text();
  return lost ? *lost : PowerLoss{};
}

}  // namespace leafcutter::node::tests
