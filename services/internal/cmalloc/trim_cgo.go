//go:build cgo

package cmalloc

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

// Trim returns free memory to the operating system, where the C library can: glibc keeps free memory below the highest
// block in use. It takes milliseconds per hundred megabytes and blocks other allocating threads for parts of that time.
func Trim() { C.trim() }
