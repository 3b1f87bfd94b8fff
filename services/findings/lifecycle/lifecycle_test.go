package lifecycle

import "testing"

func TestStatus(t *testing.T) {
	for _, c := range []struct{ state, triage, want string }{
		{Unresolved, Untriaged, Open},
		{Unresolved, Reopened, Open},
		{Unresolved, Ignored, Ignored},
		{Unresolved, Reviewing, Reviewing},
		{Unresolved, Fixing, Fixing},
		{Unresolved, ProvisionallyIgnored, ProvisionallyIgnored},
		{Muted, Untriaged, Ignored},
		{Muted, Reopened, Open},
		{Muted, Fixing, Fixing},
		{Fixed, Untriaged, Fixed},
		{Fixed, Ignored, Fixed},
		{Removed, Reopened, Removed},
	} {
		if got := Status(c.state, c.triage); got != c.want {
			t.Errorf("Status(%s, %s) = %s, want %s", c.state, c.triage, got, c.want)
		}
	}
}
