package webhook

import (
	"regexp"
	"strconv"
	"time"
)

type gitLabProject struct {
	ID                int64  `json:"id"`
	PathWithNamespace string `json:"path_with_namespace"`
	WebURL            string `json:"web_url"`
}

// gitLabTime parses both time formats of GitLab's webhooks; zero for others.
func gitLabTime(text string) time.Time {
	for _, layout := range []string{"2006-01-02 15:04:05 MST", time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

// gitLabMergeRequest uses the state to detect a closed request: GitLab also sends later changes of a closed one. Of an
// open one, only what brings commits counts: an update has oldrev then.
func gitLabMergeRequest(body []byte) (Event, error) {
	p, err := decode[struct {
		Project          gitLabProject `json:"project"`
		ObjectAttributes struct {
			IID       int64  `json:"iid"`
			State     string `json:"state"`
			UpdatedAt string `json:"updated_at"`
			Action    string `json:"action"`
			OldRev    string `json:"oldrev"`
			Last      struct {
				ID string `json:"id"`
			} `json:"last_commit"`
		} `json:"object_attributes"`
	}](body)
	about := p.ObjectAttributes
	kind, commit := Other, ""
	switch {
	case about.State == "closed" || about.State == "merged":
		kind = Closed
	case about.State == "opened" && (about.Action == "open" || about.Action == "reopen" || about.Action == "update" && about.OldRev != ""):
		kind, commit = Pushed, about.Last.ID
	}
	if err != nil || kind == Other {
		return Event{}, err
	}
	return Event{
		Kind: kind, Commit: commit, At: gitLabTime(p.ObjectAttributes.UpdatedAt), Repository: p.Project.PathWithNamespace, RepositoryID: idText(p.Project.ID),
		RepositoryURL: p.Project.WebURL,
		Number:        p.ObjectAttributes.IID, Merged: p.ObjectAttributes.State == "merged",
	}, nil
}

// gitLabBot matches the users that GitLab creates for project and group access tokens.
var gitLabBot = regexp.MustCompile(`^(project|group)_[0-9]+_bot(_[0-9a-z]+)?$`)

// gitLabNote reads new comments in merge request threads. Comments outside of a thread have no type.
func gitLabNote(body []byte) (Event, error) {
	p, err := decode[struct {
		User struct {
			Username string `json:"username"`
		} `json:"user"`
		Project          gitLabProject `json:"project"`
		ObjectAttributes struct {
			ID           int64  `json:"id"`
			DiscussionID string `json:"discussion_id"`
			Note         string `json:"note"`
			NoteableType string `json:"noteable_type"`
			Type         string `json:"type"`
			Action       string `json:"action"`
			System       bool   `json:"system"`
			CreatedAt    string `json:"created_at"`
			Position     *struct {
				NewPath string `json:"new_path"`
				NewLine int64  `json:"new_line"`
			} `json:"position"`
		} `json:"object_attributes"`
		MergeRequest struct {
			IID int64 `json:"iid"`
		} `json:"merge_request"`
	}](body)
	note := p.ObjectAttributes
	if err != nil || note.NoteableType != "MergeRequest" || note.Type == "" || note.System || note.Action == "update" {
		return Event{}, err
	}
	e := Event{
		Kind: Commented, At: gitLabTime(note.CreatedAt), Repository: p.Project.PathWithNamespace, RepositoryID: idText(p.Project.ID),
		RepositoryURL: p.Project.WebURL, Number: p.MergeRequest.IID,
		Comment: Comment{
			ID: strconv.FormatInt(note.ID, 10), Thread: note.DiscussionID, Body: note.Note,
			Author: p.User.Username, Bot: gitLabBot.MatchString(p.User.Username),
		},
	}
	if note.Position != nil {
		e.Comment.Path, e.Comment.Line = note.Position.NewPath, note.Position.NewLine
	}
	return e, nil
}
