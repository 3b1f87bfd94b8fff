package webhook

import "strings"

// noCommit is the hash of a push that deletes its ref.
const noCommit = "0000000000000000000000000000000000000000"

const branchPrefix = "refs/heads/"

// gitHubChange parses what happened to a repository. The bodies have no time of the event.
func gitHubChange(body []byte) (Event, error) {
	type account struct {
		Login string `json:"login"`
	}
	p, err := decode[struct {
		Action  string `json:"action"`
		Changes struct {
			Repository struct {
				Name struct {
					From string `json:"from"`
				} `json:"name"`
			} `json:"repository"`
			Owner struct {
				From struct {
					Organization account `json:"organization"`
					User         account `json:"user"`
				} `json:"from"`
			} `json:"owner"`
		} `json:"changes"`
		Repository struct {
			gitHubRepository
			DefaultBranch string `json:"default_branch"`
			Private       bool   `json:"private"`
			Archived      bool   `json:"archived"`
		} `json:"repository"`
		Installation gitHubSource `json:"installation"`
	}](body)
	if err != nil {
		return Event{}, err
	}
	e := about(p.Repository.gitHubRepository, p.Installation)
	switch p.Action {
	case "deleted":
		e.Kind = Deleted
		return e, nil
	case "created", "renamed", "transferred", "archived", "unarchived", "edited", "publicized", "privatized":
	default:
		return Event{}, nil
	}
	e.Kind, e.State = Changed, &State{DefaultBranch: p.Repository.DefaultBranch, Visibility: "public", Archived: p.Repository.Archived}
	if p.Repository.Private {
		e.State.Visibility = "private"
	}
	owner, name, _ := strings.Cut(e.Repository, "/")
	from := p.Changes.Owner.From.Organization.Login + p.Changes.Owner.From.User.Login // one of them is empty
	switch {
	case p.Changes.Repository.Name.From != "":
		e.Former = owner + "/" + p.Changes.Repository.Name.From
	case from != "":
		e.Former = from + "/" + name
	}
	return e, nil
}

func about(r gitHubRepository, from gitHubSource) Event {
	return Event{Repository: r.FullName, RepositoryID: idText(r.ID), RepositoryURL: r.HTMLURL, Installation: Installation{ID: from.ID}}
}

// gitHubDelete parses the deletion of a branch. Tags are ignored.
func gitHubDelete(body []byte) (Event, error) {
	p, err := decode[struct {
		Ref          string           `json:"ref"`
		RefType      string           `json:"ref_type"`
		Repository   gitHubRepository `json:"repository"`
		Installation gitHubSource     `json:"installation"`
	}](body)
	if err != nil || p.RefType != "branch" || p.Ref == "" {
		return Event{}, err
	}
	e := about(p.Repository, p.Installation)
	e.Kind, e.Ref = BranchDeleted, branchPrefix+strings.TrimPrefix(p.Ref, branchPrefix)
	return e, nil
}

// gitHubPush parses pushes that delete a branch. Palisade's own webhooks do not subscribe to pushes, but an
// application's may.
func gitHubPush(body []byte) (Event, error) {
	p, err := decode[struct {
		Ref          string           `json:"ref"`
		Deleted      bool             `json:"deleted"`
		Repository   gitHubRepository `json:"repository"`
		Installation gitHubSource     `json:"installation"`
	}](body)
	if err != nil || !p.Deleted || !strings.HasPrefix(p.Ref, branchPrefix) {
		return Event{}, err
	}
	e := about(p.Repository, p.Installation)
	e.Kind, e.Ref = BranchDeleted, p.Ref
	return e, nil
}

// gitLabPush parses pushes that delete a branch: GitLab has no other event for it.
func gitLabPush(body []byte) (Event, error) {
	p, err := decode[struct {
		Ref     string        `json:"ref"`
		After   string        `json:"after"`
		Project gitLabProject `json:"project"`
	}](body)
	if err != nil || p.After != noCommit || !strings.HasPrefix(p.Ref, branchPrefix) {
		return Event{}, err
	}
	return Event{
		Kind: BranchDeleted, Ref: p.Ref, Repository: p.Project.PathWithNamespace, RepositoryID: idText(p.Project.ID), RepositoryURL: p.Project.WebURL,
	}, nil
}

// gitLabChange parses what happened to a project. Webhooks of groups tell that projects are created and deleted; system
// hooks, which administrators of a GitLab make by hand, also tell that they are renamed and transferred.
func gitLabChange(body []byte) (Event, error) {
	p, err := decode[struct {
		EventName string `json:"event_name"`
		ID        int64  `json:"project_id"`
		Path      string `json:"path_with_namespace"`
		Former    string `json:"old_path_with_namespace"`
	}](body)
	if err != nil {
		return Event{}, err
	}
	e := Event{Repository: p.Path, RepositoryID: idText(p.ID), Former: p.Former}
	switch p.EventName {
	case "project_destroy":
		e.Kind = Deleted
	case "project_create", "project_rename", "project_transfer", "project_update":
		e.Kind = Changed
	default:
		return Event{}, nil
	}
	return e, nil
}
