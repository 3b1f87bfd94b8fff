package clone

import (
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// maxObjects is the maximum number of objects in a pack: commit, trees and files of one commit.
const maxObjects = 2_000_000

// inspect reads a pack without unpacking it, and rejects one that would exceed the limits: a few kilobytes can expand
// to gigabytes.
func inspect(file *os.File, limits Limits) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	scanner := packfile.NewScanner(file)
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if count > maxObjects {
		return &Error{Text: fmt.Sprintf("the repository is too large: it has %d files and directories, at most %d can be read", count, maxObjects), Permanent: true}
	}
	var total int64
	for range count {
		size, err := sizeOfNext(scanner, limits.Object)
		if err != nil {
			return err
		}
		if total += size; total > limits.Inflated {
			return &Error{Text: fmt.Sprintf("the repository is too large: its files have more than %d MiB", limits.Inflated>>20), Permanent: true}
		}
	}
	return nil
}

// sizeOfNext returns the unpacked size of the next object.
func sizeOfNext(scanner *packfile.Scanner, limit int64) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, err
	}
	size := header.Length
	if size < 0 || size > limit {
		return 0, tooLargeObject(limit)
	}
	var head prefixBuffer
	if _, _, err := scanner.NextObject(&head); err != nil {
		return 0, err
	}
	if header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject {
		rest, _ := number(head.bytes)
		_, size = number(rest) // a delta begins with the sizes before and after
	}
	if size < 0 || size > limit {
		return 0, tooLargeObject(limit)
	}
	return size, nil
}

func tooLargeObject(limit int64) error {
	return &Error{Text: fmt.Sprintf("the repository holds a file of more than %d MiB, which its host does not leave out", limit>>20), Permanent: true}
}

// prefixBuffer keeps the first bytes written to it.
type prefixBuffer struct{ bytes []byte }

func (b *prefixBuffer) Write(p []byte) (int, error) {
	if room := 32 - len(b.bytes); room > 0 {
		b.bytes = append(b.bytes, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// number decodes a delta's varint: seven bits per byte, low bits first. An invalid number becomes -1.
func number(from []byte) (rest []byte, n int64) {
	for i, b := range from {
		if i > 8 {
			break
		}
		n |= int64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return from[i+1:], n
		}
	}
	return nil, -1
}
