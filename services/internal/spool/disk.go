package spool

import (
	"time"

	"github.com/dustin/go-humanize"

	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// diskRetry is what a caller is told when the disk has no room.
	diskRetry = time.Minute
	// fullPart is the part of the reserve below which a disk counts as full: a database cannot write for long any more.
	fullPart = 16
)

// Disk is the file systems that a node writes to, and what is to stay free on each of them.
type Disk struct {
	// Dirs lie on these file systems.
	Dirs []string
	// Reserve is in bytes; 0 means that nothing is kept free.
	Reserve int64
}

// Free is what the fullest of the file systems has left; false where that is not known.
func (d Disk) Free() (bytes int64, known bool) {
	for _, dir := range d.Dirs {
		free, ok := freeBytes(dir)
		if ok && (!known || free < bytes) {
			bytes, known = free, true
		}
	}
	return bytes, known
}

// Check returns an error when less than the reserve is free.
func (d Disk) Check() error {
	free, low := d.low()
	if !low {
		return nil
	}
	return apierr.StorageFull(diskRetry, "the server's disk has no room for uploads: %s are free and %s stay free (disk-reserve); "+
		"its administrator has to make room", size(free), size(d.Reserve))
}

// State is for probes: a problem is empty when the reserve is free, and full says that hardly anything is.
func (d Disk) State() (problem string, full bool) {
	free, low := d.low()
	if !low {
		return "", false
	}
	if free < d.Reserve/fullPart {
		return "the disk is full: " + size(free) + " are free", true
	}
	return "the disk is nearly full, uploads are refused: " + size(free) + " are free, disk-reserve is " + size(d.Reserve), false
}

func (d Disk) low() (free int64, low bool) {
	if d.Reserve <= 0 {
		return 0, false
	}
	free, known := d.Free()
	return free, known && free < d.Reserve
}

func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }
