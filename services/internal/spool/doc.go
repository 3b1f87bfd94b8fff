// Package spool keeps what is too large for the memory on disk while it is worked on, and counts its bytes: uploads
// must not take the disk from everything else that is written there. It also knows how much of the disk is free.
package spool
