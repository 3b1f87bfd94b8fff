// Package cmalloc controls the allocator of the C library. SQLite's memory is in it; Go's garbage collector does not
// see it.
package cmalloc
