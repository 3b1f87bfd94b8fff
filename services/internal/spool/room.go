package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// roomPart and maxRoom are the size of the file of a Room: this part of the reserve, up to the maximum.
	roomPart = 4
	maxRoom  = 64 << 20
	// startPart is the part of a Room that deletes leave for the next start.
	startPart = 4
)

// Room keeps disk space for deletes in a file. On a full disk a delete needs some, because the database writes what it
// changes to its log first. The rest is for the next start of the server. A nil Room keeps nothing.
type Room struct {
	disk Disk
	path string
	size int64

	mu sync.Mutex
}

// NewRoom returns the room that the file at this path keeps. It is nil without a reserve.
func NewRoom(disk Disk, path string) *Room {
	if disk.Reserve <= 0 {
		return nil
	}
	return &Room{disk: disk, path: path, size: min(disk.Reserve/roomPart, maxRoom)}
}

// Keep fills the file, if more than the reserve is free. Else it keeps the part for the next start, if there is space.
func (r *Room) Keep() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	free, known := r.disk.Free()
	switch kept := r.kept(); {
	case !known || free >= r.disk.Reserve+r.size:
		return r.fill(kept, r.size)
	case free >= r.size:
		return r.fill(kept, r.size/startPart)
	}
	return nil
}

func (r *Room) fill(kept, size int64) error {
	if kept >= size {
		return nil
	}
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.CopyN(file, zeros{}, size-kept)
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Truncate(r.path, kept))
		}
	}
	if err != nil {
		return fmt.Errorf("keep room for deletes: %w", err)
	}
	return nil
}

// zeros are written, because a file system does not allocate what is only skipped.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Use gives the room to deletes, if less than its size is free.
func (r *Room) Use() error {
	if r == nil {
		return nil
	}
	return r.shrink(r.size / startPart)
}

// Start gives the rest to the start of a server.
func (r *Room) Start() error {
	if r == nil {
		return nil
	}
	return r.shrink(0)
}

func (r *Room) shrink(left int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.low() || r.kept() <= left {
		return nil
	}
	if err := os.Truncate(r.path, left); err != nil {
		return fmt.Errorf("use the room for deletes: %w", err)
	}
	return nil
}

type roomKey struct{}

// WithRoom marks work that may use the room.
func WithRoom(ctx context.Context) context.Context { return context.WithValue(ctx, roomKey{}, true) }

// Admit returns an error if other work would take the room.
func (r *Room) Admit(ctx context.Context) error {
	if r == nil || ctx.Value(roomKey{}) != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept() == r.size || !r.low() {
		return nil
	}
	return apierr.StorageFull(diskRetry, "the server's disk is full, and the last %s are for deletes: "+
		"delete projects, or its administrator has to make room", size(r.size))
}

func (r *Room) low() bool {
	free, known := r.disk.Free()
	return known && free < r.size
}

// kept is the size of the file.
func (r *Room) kept() int64 {
	file, err := os.Stat(r.path)
	if err != nil {
		return 0
	}
	return file.Size()
}
