// Package spool keeps data that is too large for memory on disk while it is processed. It counts the bytes, so that
// uploads cannot fill the disk, and checks how much of the disk is free.
package spool
