package tracker

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/services/scm/host"
)

// jira is Jira Cloud, or a Data Center or Server. A project is its key or id.
type jira struct {
	kind Kind
	web  string
	calls
}

func openJira(c Config) *jira {
	return &jira{kind: c.Kind, web: c.BaseURL, calls: newCalls(c)}
}

var (
	jiraProject = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)
	jiraKey     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*-[1-9][0-9]{0,17}$`)
	digits      = regexp.MustCompile(`^[0-9]{1,18}$`)
)

// Check reads the account, the project, and the types of issues that the account may create there.
func (j *jira) Check(ctx context.Context, project, issueType string) error {
	var self struct{ AccountID, Name, Key string }
	if err := j.call(ctx, http.MethodGet, "myself", nil, &self); err != nil {
		return err
	}
	if self.AccountID == "" && self.Name == "" && self.Key == "" {
		return notJira(nil)
	}
	if err := j.checkProject(ctx, project); err != nil {
		return err
	}
	_, err := j.issueType(ctx, project, issueType)
	return err
}

func (j *jira) checkProject(ctx context.Context, project string) error {
	var found struct{ ID string }
	err := notFound("no such project")
	if jiraProject.MatchString(project) {
		err = j.call(ctx, http.MethodGet, "project/"+project, nil, &found)
	}
	switch {
	case host.Is(err, host.NotFound):
		return notFound("Jira has no project %q, or does not show it to this account%s", oneLine(project, maxTitle), j.projects(ctx))
	case err == nil && found.ID == "":
		return notJira(nil)
	}
	return err
}

// maxNamed is how many names an error lists.
const maxNamed = 20

// projects names projects that the account sees; empty if they cannot be read.
func (j *jira) projects(ctx context.Context) string {
	type project struct{ Key string }
	var list []project
	var page struct{ Values []project }
	var err error
	if j.kind == Jira {
		err = j.call(ctx, http.MethodGet, fmt.Sprintf("project/search?orderBy=key&maxResults=%d", maxNamed+1), nil, &page)
		list = page.Values
	} else {
		err = j.call(ctx, http.MethodGet, "project", nil, &list)
	}
	if err != nil {
		return ""
	}
	if len(list) == 0 {
		return ", which sees no project"
	}
	var names []string
	for _, one := range list {
		names = append(names, one.Key)
	}
	return ", which sees: " + enumerate(names)
}

// enumerate lists the first names.
func enumerate(names []string) string {
	if len(names) > maxNamed {
		names = append(names[:maxNamed:maxNamed], "…")
	}
	for i, name := range names {
		names[i] = oneLine(name, 60)
	}
	return strings.Join(names, ", ")
}

type issueType struct {
	ID, Name string
	Subtask  bool
}

// issueType finds a type by its name or id. Sub-tasks need a parent, so they are left out.
func (j *jira) issueType(ctx context.Context, project, wanted string) (issueType, error) {
	if !jiraProject.MatchString(project) {
		return issueType{}, notFound("Jira has no project %q", oneLine(project, maxTitle))
	}
	var page struct{ IssueTypes, Values []issueType } // Cloud, Data Center
	if err := j.call(ctx, http.MethodGet, "issue/createmeta/"+project+"/issuetypes?maxResults=200", nil, &page); err != nil {
		return issueType{}, err
	}
	list := slices.DeleteFunc(append(page.IssueTypes, page.Values...), func(one issueType) bool { return one.Subtask })
	if len(list) == 0 {
		text := fmt.Sprintf("the account may not create issues in the project %q: give it the permission in Jira", project)
		return issueType{}, &host.Error{Kind: host.Forbidden, Text: text}
	}
	name := wanted
	if wanted == "" {
		name = "Task"
	}
	if i := slices.IndexFunc(list, func(one issueType) bool { return one.ID == name || strings.EqualFold(one.Name, name) }); i >= 0 {
		return list[i], nil
	}
	if wanted == "" {
		return list[0], nil
	}
	var names []string
	for _, one := range list {
		names = append(names, one.Name)
	}
	return issueType{}, notFound("the project %q has no type of issues %q; it has: %s", project, oneLine(wanted, maxTitle), enumerate(names))
}

// markerLabel is the label by which an issue is found.
func markerLabel(marker string) string { return "palisade-" + marker }

// Create creates an issue.
func (j *jira) Create(ctx context.Context, project string, draft Draft) (Ticket, error) {
	if err := checkMarker(draft.Marker); err != nil {
		return Ticket{}, err
	}
	kind, err := j.issueType(ctx, project, draft.IssueType)
	if err != nil {
		return Ticket{}, err
	}
	fields := maps.Clone(draft.Fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields["project"] = map[string]string{"key": project}
	if digits.MatchString(project) {
		fields["project"] = map[string]string{"id": project}
	}
	fields["issuetype"] = map[string]string{"id": kind.ID}
	fields["summary"] = title(j.kind, draft.Title)
	fields["labels"] = append(labels(j.kind, draft.Labels), markerLabel(draft.Marker))
	if text := j.text(draft.Text, draft.Items); text != nil {
		fields["description"] = text
	}
	var created issue
	if err := j.call(ctx, http.MethodPost, "issue", map[string]any{"fields": fields}, &created); err != nil {
		return Ticket{}, err
	}
	ticket, err := j.ticket(created)
	ticket.Open = err == nil // the answer does not say it
	return ticket, err
}

// issue is an issue in an answer.
type issue struct {
	ID, Key string
	Fields  struct{ Status status }
}

type status struct {
	Name           string
	StatusCategory struct{ Key string }
}

// done is the category of the statuses that close an issue.
const done = "done"

func (s status) open() bool { return s.StatusCategory.Key != done }

func (j *jira) ticket(one issue) (Ticket, error) {
	if one.ID == "" || !jiraKey.MatchString(one.Key) {
		return Ticket{}, notJira(nil)
	}
	return Ticket{Key: one.Key, ID: one.ID, URL: j.web + "/browse/" + one.Key, Open: one.Fields.Status.open()}, nil
}

// Find looks for the label in all projects, because the issue may have been moved: labels have an index, so the time of
// creation is not needed. A clone of an issue has its labels, so the oldest is the right one.
func (j *jira) Find(ctx context.Context, _, marker string, _ time.Time) (Ticket, error) {
	if err := checkMarker(marker); err != nil {
		return Ticket{}, err
	}
	path := "search"
	if j.kind == Jira {
		path = "search/jql"
	}
	var page struct{ Issues []issue }
	err := j.call(ctx, http.MethodPost, path, map[string]any{
		"jql": `labels = "` + markerLabel(marker) + `" ORDER BY created ASC`, "fields": []string{"status"}, "maxResults": 1,
	}, &page)
	if err != nil || len(page.Issues) == 0 {
		return Ticket{}, err
	}
	return j.ticket(page.Issues[0])
}

// Get reads an issue. Jira answers an old key with the issue of the new key.
func (j *jira) Get(ctx context.Context, key string) (Ticket, error) {
	path, err := issuePath(key)
	if err != nil {
		return Ticket{}, err
	}
	var found issue
	if err := j.call(ctx, http.MethodGet, path+"?fields=status", nil, &found); err != nil {
		return Ticket{}, err
	}
	if found.Fields.Status.StatusCategory.Key == "" {
		return Ticket{}, notJira(nil)
	}
	return j.ticket(found)
}

func issuePath(key string) (string, error) {
	if !jiraKey.MatchString(key) && !digits.MatchString(key) {
		return "", notFound("%q is not the key of an issue, such as SEC-12", oneLine(key, maxTitle))
	}
	return "issue/" + url.PathEscape(key), nil
}

// Comment adds a comment.
func (j *jira) Comment(ctx context.Context, key, text string) error {
	path, err := issuePath(key)
	if err != nil {
		return err
	}
	var added struct{ ID string }
	err = j.call(ctx, http.MethodPost, path+"/comment", map[string]any{"body": j.text(text, nil)}, &added)
	if err == nil && added.ID == "" {
		return notJira(nil)
	}
	return err
}
