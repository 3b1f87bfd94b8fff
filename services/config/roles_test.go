package config

import (
	"strings"
	"testing"
)

func TestRolesInConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"api,worker": "", "worker, api": "", "api": "", "worker": "", "scanner": "", "api,worker,scanner": "",
		"":           "roles: names no role",
		" ,":         "roles: names no role",
		"api,":       `roles: got "api,", which has an empty name between commas`,
		"api,wroker": `roles: got "wroker", which is not a role; want one or more of api, worker and scanner`,
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
