/* Both types for one instruction set. */
#define REAL double
#define INT int64_t
#include "_block.h"
#undef REAL
#undef INT
#define REAL float
#define INT int32_t
#include "_block.h"
#undef REAL
#undef INT
#undef ISA
#undef VBYTES
