// Package buckets limits rates by key: by credential, by network, by the key of a webhook. Each node counts for itself.
package buckets

import (
	"fmt"
	"net/netip"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// Buckets are the token buckets of one limit. They are safe for concurrent use.
type Buckets[K comparable] struct {
	cache     *lru.Cache[K, *rate.Limiter]
	perSecond rate.Limit
	burst     int
}

// New returns buckets that allow perSecond events on average and burst events at once. It keeps the buckets of the last
// size keys, about 200 bytes each, because callers can choose keys. A key whose bucket was evicted starts with a full
// one. New panics if size is not positive.
func New[K comparable](size int, perSecond float64, burst int) *Buckets[K] {
	cache, err := lru.New[K, *rate.Limiter](size)
	if err != nil {
		panic(fmt.Sprintf("buckets: %v", err))
	}
	return &Buckets[K]{cache: cache, perSecond: rate.Limit(perSecond), burst: burst}
}

// Limit is the number of events per second.
func (b *Buckets[K]) Limit() rate.Limit { return b.perSecond }

// Of returns the bucket of a key.
func (b *Buckets[K]) Of(key K) *rate.Limiter {
	if bucket, ok := b.cache.Get(key); ok {
		return bucket
	}
	bucket := rate.NewLimiter(b.perSecond, b.burst)
	if other, exists, _ := b.cache.PeekOrAdd(key, bucket); exists {
		return other // a concurrent call created it
	}
	return bucket
}

// Network is the key of an IP address. A customer of an IPv6 provider has at least 64 bits of addresses, which count
// together. Any other text is returned as it is.
func Network(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	parsed = parsed.Unmap()
	if prefix, err := parsed.Prefix(64); err == nil {
		return prefix.String()
	}
	return parsed.String() // IPv4
}
