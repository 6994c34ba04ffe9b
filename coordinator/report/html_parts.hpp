// The page's style sheet and script, which every report carries within itself.
#pragma once

#include <string_view>

namespace leafcutter::coordinator {

std::string_view html_style();
std::string_view html_script();

}  // namespace leafcutter::coordinator
