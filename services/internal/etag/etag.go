// Package etag lets readers who poll ask for changes only: a handler names the state that it answers with, and where
// the caller has that state already (If-None-Match), the answer is empty. The gateway turns it into 304 Not Modified.
package etag

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// IfNoneMatch is the metadata key under which handlers see the header; gRPC callers may set it as well.
const IfNoneMatch = "if-none-match"

// Unchanged sends the entity tag, quotes included, with the answer and reports whether the caller has that state: the
// handler returns an empty response then, before it reads anything more.
func Unchanged(ctx context.Context, tag string) (bool, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("etag", tag)); err != nil {
		return false, err
	}
	known := metadata.ValueFromIncomingContext(ctx, IfNoneMatch)
	return Matches(strings.Join(known, ","), tag), nil
}

// Matches reports whether a value of If-None-Match names the tag, in the weak comparison of RFC 9110 (8.8.3.2): W/
// makes no difference. "*" names every tag. Nothing after a malformed one counts.
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
