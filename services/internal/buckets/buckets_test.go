package buckets_test

import (
	"testing"

	"github.com/palisade/palisade/services/internal/buckets"
)

func TestKeysCountForThemselves(t *testing.T) {
	limit := buckets.New[string](2, 0.001, 2)
	allowed := func(key string) (n int) {
		for range 5 {
			if limit.Of(key).Allow() {
				n++
			}
		}
		return n
	}
	for _, key := range []string{"a", "b"} {
		if n := allowed(key); n != 2 {
			t.Errorf("%s: %d events at once, want the burst of 2", key, n)
		}
	}
	if n := allowed("a"); n != 0 {
		t.Errorf("a: %d more events, want none", n)
	}
	limit.Of("c") // evicts b
	if n := allowed("b"); n != 2 {
		t.Errorf("b after its eviction: %d events, want a full bucket", n)
	}
}

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7",
		"::ffff:192.0.2.7":       "192.0.2.7",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1%x": "2001:db8:1:2::/64",
		"":                       "",
		"a socket":               "a socket",
	} {
		if got := buckets.Network(address); got != want {
			t.Errorf("Network(%q) = %q, want %q", address, got, want)
		}
	}
}
