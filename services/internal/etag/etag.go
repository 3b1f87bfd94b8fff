// Package etag supports conditional requests of polling clients. A handler names the version of its response. When the
// caller already has that version (If-None-Match), the response is empty and the gateway turns it into 304 Not
// Modified.
package etag

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// IfNoneMatch is the metadata key of the header for handlers. gRPC callers may set it as well.
const IfNoneMatch = "if-none-match"

// Unchanged sends the entity tag, including quotes, with the response and reports whether the caller has that version.
// The handler then returns an empty response before it reads anything more.
func Unchanged(ctx context.Context, tag string) (bool, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("etag", tag)); err != nil {
		return false, err
	}
	known := metadata.ValueFromIncomingContext(ctx, IfNoneMatch)
	return Matches(strings.Join(known, ","), tag), nil
}

// Matches reports whether a value of If-None-Match contains the tag, by the weak comparison of RFC 9110 (8.8.3.2): W/
// is ignored. "*" matches every tag. It ignores everything after a malformed tag.
func Matches(ifNoneMatch, tag string) bool {
	if tag == "" {
		return false
	}
	rest := strings.TrimSpace(ifNoneMatch)
	if rest == "*" {
		return true
	}
	wanted := strings.TrimPrefix(tag, "W/")
	for rest != "" {
		rest = strings.TrimPrefix(strings.TrimLeft(rest, ", \t"), "W/")
		if !strings.HasPrefix(rest, `"`) {
			return false
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return false
		}
		if rest[:end+2] == wanted {
			return true
		}
		rest = rest[end+2:]
	}
	return false
}
