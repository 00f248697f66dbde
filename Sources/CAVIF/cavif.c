#include "cavif.h"
