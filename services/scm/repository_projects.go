package scm

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/projects/branches"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/projects/projectname"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// projectBatch holds the projects that repositories of one host may belong to, within a transaction.
//
// A repository is its id: its projects are bound to it by id. A project that does not know the id of its
// repository yet is found by the URL that it is bound to, else by its name, and gets the id then. Never again is it
// found by its name, so another repository that takes the name inherits nothing.
type projectBatch struct {
	*repositorySync
	tx    *ent.Tx
	rows  []*ent.Project // by id
	fresh []host.Repository
	// before are the changed projects as they were.
	before map[int64]*projectsv1.Project
}

// read reads the projects that repositories may belong to, or whose names they take.
func (s *repositorySync) read(ctx context.Context, tx *ent.Tx, batch []host.Repository) (*projectBatch, error) {
	var ids, keys, urls []string
	for i := range batch {
		r := &batch[i]
		if r.ID == "0" { // the host did not say it
			r.ID = ""
		}
		name := strings.ToLower(projectname.Normal(r.Name))
		keys = append(keys, strings.ToLower(r.Name), name, projectname.Aside(name, r.ID))
		urls = append(urls, spellings(webURL(r.URL))...)
		urls = append(urls, s.spelled[strings.ToLower(codehost.Plain(r.URL))]...)
		if r.ID != "" {
			ids = append(ids, r.ID)
		}
	}
	query := tx.Project.Query().Where(project.Or(
		store.OneOf(project.FieldRepositoryID, ids), store.OneOf(project.FieldNameKey, keys), store.OneOf(project.FieldRepositoryURL, urls),
	)).Order(ent.Asc(project.FieldID))
	if s.store.Postgres() { // an administrator may bind a project at the same time
		query.ForUpdate()
	}
	rows, err := query.All(ctx)
	return &projectBatch{repositorySync: s, tx: tx, rows: rows, before: map[int64]*projectsv1.Project{}}, err
}

// spelledAtOnce is how many projects readSpelled reads at once.
const spelledAtOnce = 1000

// readSpelled reads the URLs that projects without an id are bound to. There are few after the first synchronisation.
func (s *repositorySync) readSpelled(ctx context.Context) error {
	s.spelled = map[string][]string{}
	for after := int64(0); ; {
		rows, err := s.store.Reader.Project.Query().Where(project.IDGT(after), project.RepositoryIDIsNil(), project.RepositoryURLNEQ("")).
			Order(ent.Asc(project.FieldID)).Limit(spelledAtOnce).Select(project.FieldID, project.FieldRepositoryURL).All(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		after = rows[len(rows)-1].ID
		for _, row := range rows {
			key := strings.ToLower(codehost.Plain(row.RepositoryURL))
			s.spelled[key] = append(s.spelled[key], row.RepositoryURL)
		}
	}
}

// projectsOf returns the projects of a repository. Administrators may bind several to one, for example the parts of a
// monorepo.
func (b *projectBatch) projectsOf(r host.Repository) []*ent.Project {
	var found []*ent.Project
	synchronised := false
	for _, row := range b.rows {
		if b.isHere(row) && isBoundTo(row, r.ID, r.URL) {
			found = append(found, row)
			synchronised = synchronised || row.BoundBy == boundBySync
		}
	}
	if synchronised || b.onlyKnown {
		return found
	}
	if row := b.named(r); row != nil && !slices.Contains(found, row) {
		found = append(found, row)
	}
	return found
}

// isBoundTo reports whether a project at the same host is bound to a repository.
func isBoundTo(row *ent.Project, id, url string) bool {
	if row.RepositoryID != nil && id != "" {
		return *row.RepositoryID == id
	}
	return row.RepositoryURL != "" && sameRepository(row.RepositoryURL, url)
}

// named returns the project that adopts a repository because it has its name; nil if there is none.
func (b *projectBatch) named(r host.Repository) (found *ent.Project) {
	name := projectname.Normal(r.Name)
	key := strings.ToLower(name)
	for _, row := range b.rows {
		if row.RepositoryID != nil || row.BoundBy == boundByAdmin || !b.isHere(row) {
			continue
		}
		switch {
		case row.Name == r.Name || row.Name == name:
			return row
		case found == nil && (row.NameKey == key || row.NameKey == strings.ToLower(r.Name) || r.ID != "" && row.NameKey == projectname.Aside(key, r.ID)):
			found = row
		}
	}
	return found
}

// isHere reports whether a project is at this host, or at none.
func (b *projectBatch) isHere(row *ent.Project) bool { return isAt(row, b.config.BaseURL) }

func isAt(row *ent.Project, baseURL string) bool {
	at := row.RepositoryURL
	if at == "" {
		at = row.URL
	}
	return at == "" || codehost.SameHost(at, baseURL)
}

// followedName returns the name of a project after an update. A project that is named after its repository gets the
// new name of the repository; other names stay.
func (b *projectBatch) followedName(ctx context.Context, row *ent.Project, r host.Repository) (string, error) {
	name, former := projectname.Normal(r.Name), b.nameAt(cmp.Or(row.RepositoryURL, row.URL))
	aside := strings.ToLower(projectname.Aside(name, r.ID))
	switch {
	case row.NameKey == aside:
	case former == r.Name || row.BoundBy == boundByAdmin && strings.EqualFold(former, r.Name):
		return row.Name, nil // the host has not renamed it
	case former == "" || row.NameKey != strings.ToLower(former) && row.NameKey != strings.ToLower(projectname.Aside(former, r.ID)):
		return row.Name, nil
	}
	if rule := projectname.Check(name); rule != "" {
		b.log.WarnContext(ctx, "a project keeps the former name of its repository: the name of a project "+rule, "project_id", row.ID, "repository_id", r.ID)
		return row.Name, nil
	}
	for _, holder := range b.rows {
		if holder.ID == row.ID || holder.NameKey != strings.ToLower(name) {
			continue
		}
		if b.keepsName(holder) || holder.RepositoryID != nil && *holder.RepositoryID == r.ID {
			b.log.InfoContext(ctx, "a project keeps the former name of its repository: another project has the new one",
				"project_id", row.ID, "other_project_id", holder.ID)
			return row.Name, nil
		}
		if err := b.moveAside(ctx, holder); err != nil {
			return "", err
		}
	}
	return name, nil
}

// keepsName reports whether a project keeps its name although a repository of this host has that name, too: it is at
// another host, or an administrator bound it to a repository with another name.
func (b *projectBatch) keepsName(row *ent.Project) bool {
	return !b.isHere(row) || row.BoundBy == boundByAdmin && row.NameKey != strings.ToLower(b.nameAt(row.RepositoryURL))
}

// moveAside gives a project another name, which it has until the host tells the new name of its own repository. Until
// then it is bound to no URL: there is another repository now, whose code it must not read or change.
func (b *projectBatch) moveAside(ctx context.Context, row *ent.Project) error {
	id := fmt.Sprintf("project-%d", row.ID)
	if row.RepositoryID != nil {
		id = *row.RepositoryID
	}
	name := row.Name
	for utf8.RuneCountInString(projectname.Aside(name, id)) > projectname.Max {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	name = projectname.Aside(name, id)
	taken, err := b.tx.Project.Query().Where(project.NameKey(strings.ToLower(name))).Exist(ctx)
	if err != nil {
		return err
	}
	if taken {
		name = fmt.Sprintf("%s~%d", name, row.ID)
	}
	b.log.WarnContext(ctx, "a project gave its name to the repository that has it now", "project_id", row.ID, "name", row.Name, "new_name", name)
	update := row.Update().SetName(name).SetNameKey(strings.ToLower(name))
	if row.RepositoryID != nil {
		update.SetRepositoryURL("").SetLeftHostAt(store.Now())
	}
	return b.change(ctx, row, update, true)
}

// change makes a change of a project, if it is one, and remembers the project as it was for the audit trail. taken says
// that another project gets its name.
func (b *projectBatch) change(ctx context.Context, row *ent.Project, update *ent.ProjectUpdateOne, taken bool) error {
	if len(update.Mutation().Fields()) == 0 && len(update.Mutation().ClearedFields()) == 0 {
		return nil
	}
	renamed := remediation.Renaming{Of: remediation.RefProject, From: row.Name, Taken: taken}
	after, err := update.Save(ctx)
	if err != nil {
		return err
	}
	if err := branches.Record(ctx, b.tx, row, after); err != nil {
		return err
	}
	if renamed.To = after.Name; renamed.To != renamed.From {
		if err := renamed.Apply(ctx, b.store, b.tx); err != nil {
			return err
		}
	}
	if b.before[row.ID] == nil {
		b.before[row.ID] = auditedProject(row)
	}
	i := slices.IndexFunc(b.rows, func(other *ent.Project) bool { return other.ID == row.ID })
	*b.rows[i] = *after
	return nil
}

// audit records the projects that changed in more than visibility and branch.
func (b *projectBatch) audit(ctx context.Context) {
	for _, row := range b.rows {
		if before := b.before[row.ID]; before != nil && !proto.Equal(before, auditedProject(row)) {
			audit.Change(ctx, "project", row.ID, before, auditedProject(row))
		}
	}
}

// auditedProject is what a source-code host decides about a project, for the audit trail.
func auditedProject(row *ent.Project) *projectsv1.Project {
	out := &projectsv1.Project{
		Id: row.ID, Name: row.Name, RepositoryUrl: row.RepositoryURL, Archived: row.ArchivedAt != nil, LeftHostAt: store.Timestamp(row.LeftHostAt),
	}
	if row.RepositoryID != nil {
		out.RepositoryId = *row.RepositoryID
	}
	return out
}

// nameAt is the name of the repository at a URL of this host ("acme/web"); empty if it is at another.
func (s *repositorySync) nameAt(address string) string {
	base := strings.TrimRight(s.config.BaseURL, "/") + "/"
	address = codehost.Plain(address)
	if len(address) <= len(base) || !strings.EqualFold(address[:len(base)], base) {
		return ""
	}
	name := address[len(base):]
	if connect.TypeOf(s.config.Type) == scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS {
		if plain, err := url.PathUnescape(name); err == nil {
			name = host.AzureName(plain)
		}
	}
	return name
}

// sameRepository compares URLs of repositories at one host. Hosts ignore letter case.
func sameRepository(a, b string) bool {
	return b != "" && strings.EqualFold(codehost.Plain(a), codehost.Plain(b))
}

// spellings are the usual ways to write the URL of a repository.
func spellings(address string) []string {
	if address == "" {
		return nil
	}
	plain := codehost.Plain(address)
	lower := strings.ToLower(plain)
	return []string{address, plain, plain + "/", plain + ".git", lower, lower + "/", lower + ".git"}
}
