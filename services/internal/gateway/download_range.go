package gateway

import (
	"net/http"
	"strconv"
	"strings"
)

// part is what a response has of a file.
type part struct{ offset, length int64 }

// wholeUnless returns the part of a file of this size that the request asks for, and whether it is a range. A range
// that the server does not understand, or that belongs to another version of the file, means the whole file (RFC 9110,
// 13.1.5 and 14.2). ok is false for a range outside the file.
func wholeUnless(header http.Header, size int64, tag, modified string) (p part, ranged, ok bool) {
	whole := part{0, size}
	if own := header.Get("If-Range"); own != "" && own != tag && own != modified {
		return whole, false, true
	}
	unit, spec, _ := strings.Cut(header.Get("Range"), "=")
	first, last, isRange := strings.Cut(strings.TrimSpace(spec), "-")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || !isRange || strings.Contains(spec, ",") { // several parts may be answered with the whole
		return whole, false, true
	}
	from, fromErr := number(first)
	to, toErr := number(last)
	switch {
	case first == "" && toErr == nil: // the last bytes
		p = part{max(0, size-to), min(to, size)}
	case fromErr == nil && last == "":
		p = part{from, size - from}
	case fromErr == nil && toErr == nil && from <= to:
		p = part{from, min(to, size-1) - from + 1}
	default:
		return whole, false, true
	}
	return p, true, p.length > 0
}

func number(digits string) (int64, error) {
	n, err := strconv.ParseUint(digits, 10, 63)
	return int64(n), err
}
