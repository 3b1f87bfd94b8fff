package projects

import (
	"fmt"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// checkIgnored refuses what is no pattern of a .gitignore file.
func checkIgnored(r *projectsv1.UpdateProjectRequest) error {
	of := r.GetProductIgnoredFiles()
	for _, list := range []struct {
		field    string
		patterns []string
	}{
		{maskIgnored, r.GetIgnoredFiles()}, {maskOfProducts + ".sast", of.GetSast()}, {maskOfProducts + ".sca", of.GetSca()},
		{maskOfProducts + ".secrets", of.GetSecrets()},
	} {
		if bad := pathignore.Check(list.patterns); bad != nil {
			field := fmt.Sprintf("%s[%d]", list.field, bad.Index)
			return apierr.InvalidArgument(field, "%s must be a pattern of a .gitignore file: %v; got %s", field, bad.Err, apierr.Quote(list.patterns[bad.Index]))
		}
	}
	return nil
}

// productIgnored is the stored form. Products without patterns are left out.
func productIgnored(of *projectsv1.ProductIgnoredFiles) map[string][]string {
	stored := map[string][]string{}
	for product, patterns := range map[string][]string{
		vocabulary.SAST: of.GetSast(), vocabulary.SCA: of.GetSca(), vocabulary.Secrets: of.GetSecrets(),
	} {
		if len(patterns) > 0 {
			stored[product] = patterns
		}
	}
	return stored
}

// productIgnoredFiles is the form of the API; nil without patterns.
func productIgnoredFiles(stored map[string][]string) *projectsv1.ProductIgnoredFiles {
	if len(stored) == 0 {
		return nil
	}
	return &projectsv1.ProductIgnoredFiles{Sast: stored[vocabulary.SAST], Sca: stored[vocabulary.SCA], Secrets: stored[vocabulary.Secrets]}
}
