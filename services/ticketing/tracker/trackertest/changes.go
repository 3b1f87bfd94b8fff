package trackertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

const (
	maxSummary = 255
	maxText    = 32_767
)

// richText returns a description or comment as it is stored; problem is Jira's text about another format.
func (j *Jira) richText(value json.RawMessage) (text, problem string) {
	if !j.cloud {
		if json.Unmarshal(value, &text) != nil {
			return "", "Operation value must be a string"
		}
	} else {
		var document struct {
			Type    string
			Version int
			Content []any
		}
		if json.Unmarshal(value, &document) != nil || document.Type != "doc" || document.Version != 1 || document.Content == nil {
			return "", "Operation value must be an Atlassian Document (see the Atlassian Document Format)"
		}
		text = string(value)
	}
	if len(utf16.Encode([]rune(text))) > maxText {
		return "", "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
	}
	return text, ""
}

type createRequest struct {
	Fields map[string]json.RawMessage
}

// named reads a field that is an object with a key, id or name.
func (r createRequest) named(field string) string {
	var value struct{ ID, Key, Name string }
	_ = json.Unmarshal(r.Fields[field], &value)
	return value.ID + value.Key + value.Name
}

func (j *Jira) create(w http.ResponseWriter, r *http.Request) {
	var request createRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		refuse(w, http.StatusBadRequest, nil, "Unexpected character")
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	issue, problems := j.newIssue(request)
	if len(problems) > 0 {
		refuse(w, http.StatusBadRequest, problems)
		return
	}
	j.issues = append(j.issues, issue)
	if j.lose {
		j.lose = false
		panic(http.ErrAbortHandler)
	}
	write(w, http.StatusCreated, object{"id": issue.ID, "key": issue.Key, "self": j.URL + "/rest/api/latest/issue/" + issue.ID})
}

func (j *Jira) newIssue(request createRequest) (*Issue, map[string]string) {
	problems := map[string]string{}
	project := projectKey(request.named("project"))
	j.created++
	issue := &Issue{
		ID: strconv.Itoa(20_000 + j.created), Key: fmt.Sprintf("%s-%d", project, j.created), Status: "To Do", Fields: map[string]any{},
	}
	if project == "" {
		problems["project"] = "valid project is required"
	}
	at := slices.IndexFunc(typesOf(project), func(o object) bool {
		return o["id"] == request.named("issuetype") || o["name"] == request.named("issuetype")
	})
	if at < 0 {
		problems["issuetype"] = "valid issue type is required"
	} else {
		issue.Type = fmt.Sprint(typesOf(project)[at]["name"])
	}
	_ = json.Unmarshal(request.Fields["summary"], &issue.Title)
	switch {
	case strings.TrimSpace(issue.Title) == "":
		problems["summary"] = "You must specify a summary of the issue."
	case len(utf16.Encode([]rune(issue.Title))) > maxSummary:
		problems["summary"] = "Summary can't exceed 255 characters."
	case strings.Contains(issue.Title, "\n"):
		problems["summary"] = "The summary is invalid because it contains newline characters."
	}
	_ = json.Unmarshal(request.Fields["labels"], &issue.Labels)
	if slices.ContainsFunc(issue.Labels, func(label string) bool { return strings.Contains(label, " ") }) {
		problems["labels"] = "The label contains spaces which is invalid."
	}
	if value, ok := request.Fields["description"]; ok {
		text, problem := j.richText(value)
		if issue.Body = text; problem != "" {
			problems["description"] = problem
		}
	}
	for _, name := range j.required {
		if _, ok := request.Fields[name]; !ok {
			problems[name] = name + " is required."
		}
	}
	for name, value := range request.Fields {
		var decoded any
		_ = json.Unmarshal(value, &decoded)
		issue.Fields[name] = decoded
	}
	return issue, problems
}

func (j *Jira) comment(w http.ResponseWriter, r *http.Request) {
	var request struct{ Body json.RawMessage }
	_ = json.NewDecoder(r.Body).Decode(&request)
	j.mu.Lock()
	defer j.mu.Unlock()
	issue := j.placed(w, r)
	if issue == nil {
		return
	}
	text, problem := j.richText(request.Body)
	if problem == "" && text == "" {
		problem = "Comment body can not be empty!"
	}
	if problem != "" {
		refuse(w, http.StatusBadRequest, map[string]string{"comment": problem})
		return
	}
	issue.Comments = append(issue.Comments, text)
	write(w, http.StatusCreated, object{"id": strconv.Itoa(30_000 + len(issue.Comments)), "body": request.Body})
}

// resolutions are names by id.
var resolutions = map[string]string{"10000": "Duplicate", "10001": "Done", "10002": "Won't Do"}

// steps are the transitions by their id: the status that they lead to.
var steps = map[string]string{"11": "To Do", "21": "In Progress", "31": "Done"}

func (j *Jira) stepObject(id string) object {
	fields := object{}
	if steps[id] == "Done" && j.resolve {
		var allowed []object
		for _, resolution := range slices.Sorted(maps.Keys(resolutions)) {
			allowed = append(allowed, object{"id": resolution, "name": resolutions[resolution]})
		}
		fields["resolution"] = object{"required": true, "hasDefaultValue": false, "name": "Resolution", "allowedValues": allowed}
	}
	if steps[id] != "Done" && j.resolve {
		fields["resolution"] = object{"required": false, "hasDefaultValue": false, "name": "Resolution", "allowedValues": []object{}}
	}
	return object{
		"id": id, "name": "Go to " + steps[id], "to": statusObject(steps[id]), "hasScreen": j.resolve, "isAvailable": true, "fields": fields,
	}
}

func (j *Jira) transitions(w http.ResponseWriter, r *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	issue := j.placed(w, r)
	if issue == nil {
		return
	}
	list := []object{}
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		if steps[id] != issue.Status {
			step := j.stepObject(id)
			if !strings.Contains(r.URL.Query().Get("expand"), "transitions.fields") {
				delete(step, "fields")
			}
			list = append(list, step)
		}
	}
	write(w, http.StatusOK, object{"expand": "transitions", "transitions": list})
}

func (j *Jira) transition(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Transition struct{ ID string }
		Fields     struct {
			Resolution *struct{ ID, Name string }
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	j.mu.Lock()
	defer j.mu.Unlock()
	issue := j.placed(w, r)
	if issue == nil {
		return
	}
	status := steps[request.Transition.ID]
	if status == "" || status == issue.Status {
		refuse(w, http.StatusBadRequest, nil, "The workflow operation is not valid for the current state of this issue.")
		return
	}
	resolution := ""
	if given := request.Fields.Resolution; given != nil {
		for id, name := range resolutions {
			if given.ID == id || given.Name == name {
				resolution = id
			}
		}
	}
	if status == "Done" && j.resolve && resolution == "" {
		refuse(w, http.StatusBadRequest, map[string]string{"resolution": "Resolution is required."})
		return
	}
	issue.Status, issue.Resolution = status, resolution
	w.WriteHeader(http.StatusNoContent)
}

// labelQuery matches the only query that this Jira knows.
var labelQuery = regexp.MustCompile(`^labels = "([^"]+)" ORDER BY created (ASC|DESC)$`)

func (j *Jira) search(w http.ResponseWriter, r *http.Request) {
	var request struct {
		JQL        string
		Fields     []string
		MaxResults int
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	parts := labelQuery.FindStringSubmatch(request.JQL)
	if parts == nil {
		refuse(w, http.StatusBadRequest, nil, "Error in the JQL Query: "+request.JQL)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	visible := j.issues
	if j.indexed >= 0 {
		visible = visible[:min(j.indexed, len(visible))]
	}
	found := []object{}
	for _, one := range visible {
		if !slices.Contains(one.Labels, parts[1]) {
			continue
		}
		shown := j.object(one)
		if !slices.Contains(request.Fields, "status") {
			delete(shown, "fields")
		}
		found = append(found, shown)
	}
	if parts[2] == "DESC" {
		slices.Reverse(found)
	}
	total := len(found)
	found = found[:min(total, request.MaxResults)]
	if j.cloud {
		write(w, http.StatusOK, object{"issues": found, "isLast": len(found) == total})
		return
	}
	write(w, http.StatusOK, object{"startAt": 0, "maxResults": request.MaxResults, "total": total, "issues": found})
}
