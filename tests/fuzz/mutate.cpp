#include "mutate.hpp"

#include <algorithm>

namespace fuzz {
namespace {

using leafcutter::base::Stream;

constexpr std::size_t longest = 1 << 16;

/// A stretch of `text`; empty when there is none.
std::pair<std::size_t, std::size_t> stretch(const std::string& text, Stream& random) {
  if (text.empty()) return {0, 0};
  const auto begin = static_cast<std::size_t>(random.below(text.size()));
  const auto most = std::min<std::size_t>(text.size() - begin, 64);
  return {begin, static_cast<std::size_t>(random.below(most)) + 1};
}

void change(std::string& bytes, const std::vector<std::string>& corpus, Stream& random) {
  static constexpr unsigned char telling[] = {0x00, 0x01, 0x7f, 0x80, 0xc1, 0xdd, 0xdf, 0xff, '\n', '\r', ' ',
                                              '{',  '}',  '[',  ':',  '$',  '&',  '*',  '-',  '0',  '9'};
  const auto [begin, size] = stretch(bytes, random);
  switch (random.below(7)) {
    case 0:
      if (!bytes.empty()) bytes[begin] = static_cast<char>(bytes[begin] ^ (1 << random.below(8)));
      break;
    case 1:
      if (!bytes.empty()) bytes[begin] = static_cast<char>(telling[random.below(sizeof telling)]);
      break;
    case 2: bytes.erase(begin, size); break;
    case 3: bytes.insert(begin, bytes.substr(begin, size)); break;
    case 4: bytes.insert(begin, 1, static_cast<char>(telling[random.below(sizeof telling)])); break;
    case 5: {
      const auto& other = corpus[random.below(corpus.size())];
      const auto [from, length] = stretch(other, random);
      bytes.replace(begin, size, other.substr(from, length));
      break;
    }
    default: bytes.resize(begin); break;
  }
  if (bytes.size() > longest) bytes.resize(longest);
}

}  // namespace

std::string mutate(const std::vector<std::string>& corpus, Stream& random) {
  auto bytes = corpus[random.below(corpus.size())];
  for (auto left = random.below(8) + 1; left > 0; --left) change(bytes, corpus, random);
  return bytes;
}

}  // namespace fuzz
