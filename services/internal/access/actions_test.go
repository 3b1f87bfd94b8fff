package access

import (
	"slices"
	"testing"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

func TestEveryPermissionHasOneAction(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range actions {
		if seen[a.word] {
			t.Errorf("the word %s stands for two permissions", a.word)
		}
		seen[a.word] = true
	}
	for permission := range allowed {
		n := 0
		for _, a := range actions {
			if a.permission == permission {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%v has %d actions, want 1", permission, n)
		}
	}
}

// TestActionsFollowTheRules compares the actions for user interfaces with what the server permits.
func TestActionsFollowTheRules(t *testing.T) {
	for _, role := range Roles {
		granted := Actions(role)
		for _, a := range actions {
			rule := &optionsv1.MethodRule{Permission: a.permission, Schemes: []optionsv1.Scheme{optionsv1.Scheme_SCHEME_JWT}}
			err := Authorize(rule, &Principal{Kind: KindUser, Scheme: optionsv1.Scheme_SCHEME_JWT}, &Grant{Role: role})
			if (err == nil) != slices.Contains(granted, a.word) {
				t.Errorf("%s has the actions %v, but %s gets %v", role, granted, a.word, err)
			}
		}
	}
}
