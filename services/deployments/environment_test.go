package deployments

import "testing"

func TestFreeSlug(t *testing.T) {
	long := "a-name-of-exactly-sixty-three-letters-which-is-as-long-as-it-gets"[:maxSlug]
	for _, c := range []struct {
		base  string
		taken []string
		want  string
	}{
		{"acme", nil, "acme"},
		{"acme", []string{"acme-2", "acme-labs"}, "acme"},
		{"acme", []string{"acme", "acme-2", "acme-4"}, "acme-3"},
		{long, []string{long}, long[:maxSlug-slugNumber] + "-2"},
	} {
		if got := freeSlug(c.base, c.taken); got != c.want || len(got) > maxSlug {
			t.Errorf("%s of %v: %s, want %s", c.base, c.taken, got, c.want)
		}
	}
}
