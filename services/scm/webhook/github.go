package webhook

import (
	"encoding/json"
	"strconv"
	"time"
)

type gitHubRepository struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
	HTMLURL  string `json:"html_url"`
}

type gitHubUser struct {
	Login string `json:"login"`
	Type  string `json:"type"`
}

type gitHubSource struct {
	ID int64 `json:"id"`
}

func gitHubPullRequest(body []byte) (Event, error) {
	p, err := decode[struct {
		Action      string `json:"action"`
		PullRequest struct {
			Number   int64      `json:"number"`
			Merged   bool       `json:"merged"`
			ClosedAt *time.Time `json:"closed_at"`
			Head     struct {
				SHA string `json:"sha"`
			} `json:"head"`
		} `json:"pull_request"`
		Repository   gitHubRepository `json:"repository"`
		Installation gitHubSource     `json:"installation"`
	}](body)
	kind := map[string]Kind{"closed": Closed, "opened": Pushed, "reopened": Pushed, "synchronize": Pushed}[p.Action]
	if err != nil || kind == Other {
		return Event{}, err
	}
	e := Event{
		Kind: kind, Repository: p.Repository.FullName, RepositoryID: idText(p.Repository.ID), RepositoryURL: p.Repository.HTMLURL,
		Number: p.PullRequest.Number, Merged: p.PullRequest.Merged, Installation: Installation{ID: p.Installation.ID},
	}
	if kind == Pushed {
		e.Commit = p.PullRequest.Head.SHA
	}
	if p.PullRequest.ClosedAt != nil {
		e.At = *p.PullRequest.ClosedAt
	}
	return e, nil
}

// gitHubComment reads replies only: a comment that starts a thread does not reply to ours.
func gitHubComment(body []byte) (Event, error) {
	p, err := decode[struct {
		Action  string `json:"action"`
		Comment struct {
			ID           int64      `json:"id"`
			InReplyToID  int64      `json:"in_reply_to_id"`
			Body         string     `json:"body"`
			User         gitHubUser `json:"user"`
			Path         string     `json:"path"`
			Line         int64      `json:"line"`
			OriginalLine int64      `json:"original_line"`
			CreatedAt    time.Time  `json:"created_at"`
		} `json:"comment"`
		PullRequest struct {
			Number int64 `json:"number"`
		} `json:"pull_request"`
		Repository   gitHubRepository `json:"repository"`
		Sender       gitHubUser       `json:"sender"`
		Installation gitHubSource     `json:"installation"`
	}](body)
	if err != nil || p.Action != "created" || p.Comment.InReplyToID == 0 {
		return Event{}, err
	}
	c := p.Comment
	if c.Line == 0 {
		c.Line = c.OriginalLine
	}
	return Event{
		Kind: Commented, At: c.CreatedAt, Repository: p.Repository.FullName, RepositoryID: idText(p.Repository.ID), RepositoryURL: p.Repository.HTMLURL,
		Number: p.PullRequest.Number,
		Comment: Comment{
			ID: strconv.FormatInt(c.ID, 10), Thread: strconv.FormatInt(c.InReplyToID, 10), Body: c.Body,
			Author: c.User.Login, Bot: c.User.Type == "Bot" || p.Sender.Type == "Bot", Path: c.Path, Line: c.Line,
		},
		Installation: Installation{ID: p.Installation.ID},
	}, nil
}

// maxSeconds is the start of year 10000, which JSON cannot represent as a time.
const maxSeconds = 253_402_300_800

// gitHubTime parses both formats of installation times: text, and seconds since 1970. It returns zero for others.
func gitHubTime(raw json.RawMessage) time.Time {
	var seconds int64
	if err := json.Unmarshal(raw, &seconds); err == nil && 0 < seconds && seconds < maxSeconds {
		return time.Unix(seconds, 0).UTC()
	}
	var at time.Time
	if err := json.Unmarshal(raw, &at); err != nil {
		return time.Time{}
	}
	return at
}

func gitHubInstallation(body []byte) (Event, error) {
	p, err := decode[struct {
		Action       string `json:"action"`
		Installation struct {
			ID        int64           `json:"id"`
			Account   gitHubUser      `json:"account"`
			UpdatedAt json.RawMessage `json:"updated_at"`
			// Permissions are absent, or have a word for each permission.
			Permissions map[string]string `json:"permissions"`
		} `json:"installation"`
	}](body)
	if err != nil {
		return Event{}, err
	}
	e := Event{Kind: Installed, Installation: Installation{
		ID: p.Installation.ID, Namespace: p.Installation.Account.Login, Present: true, UpdatedAt: gitHubTime(p.Installation.UpdatedAt),
	}}
	if p.Installation.Permissions != nil {
		readsCode := p.Installation.Permissions["contents"] != ""
		e.Installation.ReadsCode = &readsCode
	}
	switch p.Action {
	case "created", "unsuspend", "new_permissions_accepted":
	case "suspend":
		e.Installation.Suspended = true
	case "deleted":
		e.Installation.Present = false
	default:
		return Event{}, nil
	}
	return e, nil
}
