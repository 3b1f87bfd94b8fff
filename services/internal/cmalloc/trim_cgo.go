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

// Trim gives free memory back to the operating system, where the C library can: glibc keeps all that lies below memory
// in use. It takes milliseconds for a hundred megabytes, and other threads that allocate wait for parts of that.
func Trim() { C.trim() }
