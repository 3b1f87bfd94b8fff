package access

import (
	"slices"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// actions name the permissions inside a deployment for user interfaces, each as <noun>:<verb>. They are part of the API
// and never change.
var actions = []struct {
	permission optionsv1.Permission
	word       string
}{
	{optionsv1.Permission_PERMISSION_READ, "deployment:read"},
	{optionsv1.Permission_PERMISSION_TRIAGE, "findings:triage"},
	{optionsv1.Permission_PERMISSION_UPLOAD, "scans:upload"},
	{optionsv1.Permission_PERMISSION_MANAGE, "settings:manage"},
	{optionsv1.Permission_PERMISSION_MANAGE_TEAMS, "teams:manage"},
}

// Permits reports whether a role holds a permission inside its deployment.
func Permits(role Role, permission optionsv1.Permission) bool {
	return slices.Contains(allowed[permission], role)
}

// Actions lists what a role may do in its deployment: one action for each permission that Authorize grants it.
func Actions(role Role) (words []string) {
	for _, a := range actions {
		if Permits(role, a.permission) {
			words = append(words, a.word)
		}
	}
	return words
}
