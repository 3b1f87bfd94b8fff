// Package cmalloc speaks to the allocator of the C library, whose memory SQLite lives in and Go's collector knows
// nothing of.
package cmalloc
