package config

import (
	"strings"
	"testing"
)

func TestRolesInConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"api,worker": "", "worker, api": "", "api": "", "worker": "",
		"":           "roles: names no role",
		" ,":         "roles: names no role",
		"api,":       `roles: got "api,", in which a name between commas is missing`,
		"api,wroker": `roles: got "wroker", which is no role; want api, worker or both`,
		"API":        `roles: got "API"`,
	} {
		c := Default()
		c.Roles = text
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
