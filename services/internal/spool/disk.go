package spool

import (
	"time"

	"github.com/dustin/go-humanize"

	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// diskRetry is the retry delay that callers get when the disk is full.
	diskRetry = time.Minute
	// fullDivisor: the disk counts as full when less than this fraction of the reserve is free. The database can then
	// not write for long.
	fullDivisor = 16
)

// Disk is the file systems that a node writes to, and the space to keep free on each.
type Disk struct {
	// Dirs are directories on these file systems.
	Dirs []string
	// Reserve is in bytes; 0 disables the check.
	Reserve int64
	// Growth is how many bytes an import writes to these file systems for each byte of a received file, beside the file
	// itself; 0 if the database is elsewhere.
	Growth int64
}

// Free returns the free bytes of the fullest file system; known is false if it cannot be determined.
func (d Disk) Free() (bytes int64, known bool) {
	for _, dir := range d.Dirs {
		free, ok := freeBytes(dir)
		if ok && (!known || free < bytes) {
			bytes, known = free, true
		}
	}
	return bytes, known
}

// Check returns an error when less than the reserve will be free after these bytes have been written.
func (d Disk) Check(expected int64) error {
	free, low := d.low(expected)
	if !low {
		return nil
	}
	promised := ""
	if expected > 0 {
		promised = ", uploads in progress need " + size(expected)
	}
	return apierr.StorageFull(diskRetry, "the server's disk has no room for uploads: %s are free%s and %s stay free (disk-reserve); "+
		"its administrator has to make room", size(free), promised, size(d.Reserve))
}

// State describes the disk for health probes. problem is empty while the reserve is free. full means that almost no
// space is left.
func (d Disk) State() (problem string, full bool) {
	free, low := d.low(0)
	if !low {
		return "", false
	}
	if free < d.Reserve/fullDivisor {
		return "the disk is full: " + size(free) + " are free", true
	}
	return "the disk is nearly full, uploads are refused: " + size(free) + " are free, disk-reserve is " + size(d.Reserve), false
}

func (d Disk) low(expected int64) (free int64, low bool) {
	if d.Reserve <= 0 {
		return 0, false
	}
	free, known := d.Free()
	return free, known && free-expected < d.Reserve
}

func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }
