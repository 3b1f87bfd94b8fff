package scans

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/projectname"
)

// followRepository returns the name of a scan's project. The CI system tells the host's id of the repository, which
// stays when the repository gets another name: until the host tells that, its scans come under a name that no project
// has yet, or that the project of another repository still has. The id of a scan only chooses a project. It is not
// stored, because every uploader chooses it, and the stored id decides which repository's code Palisade reads.
func followRepository(ctx context.Context, db *ent.Client, about *scansv1.ScanProjectMetadata, name string) (string, error) {
	id := about.GetRepoId()
	if !isRepositoryID(id) || name != about.GetRepository() { // a part of a repository has a name of its own
		return name, nil
	}
	rows, err := db.Project.Query().Where(project.Or(byname.Is(ctx, name), project.RepositoryID(id))).Order(ent.Asc(project.FieldID)).All(ctx)
	if err != nil {
		return "", err
	}
	meant := byname.Choose(rows, name)
	taken, renamed := false, ""
	for _, row := range rows {
		switch {
		case row == meant && (row.RepositoryID == nil || *row.RepositoryID == id || !codehost.SameHost(addressOf(row), about.GetRepoUrl())):
			return name, nil
		case row == meant:
			taken = true
		case renamed == "" && isNamedAfter(row) && codehost.SameHost(addressOf(row), about.GetRepoUrl()):
			renamed = row.Name
		}
	}
	aside := projectname.Aside(name, id)
	switch {
	case renamed != "":
		return renamed, nil
	case taken && utf8.RuneCountInString(aside) <= projectname.Max:
		return aside, nil
	}
	return name, nil
}

// isRepositoryID reports whether a text can be an id of a host: digits, or a UUID.
func isRepositoryID(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdefABCDEF-") == ""
}

// isNamedAfter reports whether a project has the last known name of its repository, also if it had to give it away.
func isNamedAfter(row *ent.Project) bool {
	name := strings.TrimSuffix(row.NameKey, strings.ToLower(projectname.Aside("", *row.RepositoryID)))
	return strings.HasSuffix(strings.ToLower(codehost.Plain(addressOf(row))), "/"+name)
}

// addressOf is the last known URL of a project's repository. A project that had to give its name away is bound to none.
func addressOf(row *ent.Project) string { return cmp.Or(row.RepositoryURL, row.URL) }
