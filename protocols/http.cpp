#include "protocols/http.hpp"
