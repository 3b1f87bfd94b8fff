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
func Matches(ifNoneMatch, tag string) bool { return matches(ifNoneMatch, tag, true) }

// MatchesStrongly reports whether a value of If-Match contains the tag, by the strong comparison of RFC 9110 (13.1.1):
// weak tags, with W/, match nothing. It treats "*" and malformed tags as Matches does.
func MatchesStrongly(ifMatch, tag string) bool { return matches(ifMatch, tag, false) }

func matches(list, tag string, weak bool) bool {
	if tag == "" {
		return false
	}
	rest := strings.TrimSpace(list)
	if rest == "*" {
		return true
	}
	wanted := tag
	if weak {
		wanted = strings.TrimPrefix(tag, "W/")
	}
	for rest != "" {
		rest = strings.TrimLeft(rest, ", \t")
		opaque, isWeak := strings.CutPrefix(rest, "W/")
		if !strings.HasPrefix(opaque, `"`) {
			return false
		}
		end := strings.IndexByte(opaque[1:], '"')
		if end < 0 {
			return false
		}
		if opaque[:end+2] == wanted && (weak || !isWeak) {
			return true
		}
		rest = opaque[end+2:]
	}
	return false
}
