// A request and a reply of HTTP, as far as the small interfaces of this program need them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace leafcutter::http {

struct Request {
  std::string method, target;
  std::string user_agent = {}, authorization = {};
  std::string body = {};
};

struct Reply {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  const std::string* header(const std::string& name) const;
};

}  // namespace leafcutter::http
