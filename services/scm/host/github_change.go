package host

import (
	"bytes"
	"context"
	"strings"

	"github.com/google/go-github/v84/github"
)

// File reads a file through the contents API.
func (h *gitHub) File(ctx context.Context, repository, path, ref string) ([]byte, error) {
	content, _, err := h.content(ctx, repository, path, ref)
	return content, err
}

// content returns a file and its SHA, which an update needs.
func (h *gitHub) content(ctx context.Context, repository, path, ref string) ([]byte, string, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return nil, "", err
	}
	if err := checkPath(path); err != nil {
		return nil, "", err
	}
	file, directory, _, err := h.client.Repositories.GetContents(ctx, owner, name, path, &github.RepositoryContentGetOptions{Ref: ref})
	if err != nil {
		return nil, "", gitHubError(err)
	}
	if file == nil {
		if _, err := checkList(directory, nil); err != nil || len(directory) == 0 { // Git has no empty directories
			return nil, "", malformed("the host's answer is not a file of GitHub", err)
		}
		return nil, "", tooLargeFile(path)
	}
	if file.GetType() == "" {
		return nil, "", malformed("the host's answer is not a file of GitHub", nil)
	}
	if file.GetType() != "file" || file.GetEncoding() == "none" || file.GetSize() > maxFile {
		return nil, "", tooLargeFile(path)
	}
	text, err := file.GetContent()
	if err != nil || file.GetSHA() == "" {
		return nil, "", malformed("the host's answer is not a file of GitHub", err)
	}
	return []byte(text), file.GetSHA(), nil
}

// ChangedFiles lists the files of a pull request, and their former names.
func (h *gitHub) ChangedFiles(ctx context.Context, repository string, number int64) ([]string, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return nil, err
	}
	pull, err := gitHubAnswer(h.client.PullRequests.Get(ctx, owner, name, int(number)))
	if err != nil {
		return nil, err
	}
	if pull.ChangedFiles == nil {
		return nil, malformed("the host's answer is not a pull request of GitHub", nil)
	}
	files := paged(gitHubPages(func(n int) ([]*github.CommitFile, *github.Response, error) {
		return h.client.PullRequests.ListFiles(ctx, owner, name, int(number), &github.ListOptions{Page: n, PerPage: pageSize})
	}))
	return changedPaths(files, pull.GetChangedFiles(), func(f *github.CommitFile) []string {
		return []string{f.GetFilename(), f.GetPreviousFilename()}
	})
}

// Propose creates the branch, the commit and the pull request, each unless it exists.
func (h *gitHub) Propose(ctx context.Context, repository string, change Change) (PullRequest, error) {
	owner, name, err := splitRepository(repository)
	if err != nil {
		return PullRequest{}, err
	}
	pulls, err := gitHubList(h.client.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{
		State: "open", Head: owner + ":" + change.Branch, Base: change.Base,
	}))
	if err != nil {
		return PullRequest{}, err
	}
	if err := h.commit(ctx, owner, name, change); err != nil {
		return PullRequest{}, err
	}
	for _, pull := range pulls {
		if request, err := gitHubPull(pull); err != nil || request.Head == change.Branch {
			return request, err
		}
	}
	pull, err := gitHubAnswer(h.client.PullRequests.Create(ctx, owner, name, &github.NewPullRequest{
		Title: &change.Title, Head: &change.Branch, Base: &change.Base, Body: &change.Text, MaintainerCanModify: github.Ptr(true),
	}))
	if err != nil {
		return PullRequest{}, err
	}
	return gitHubPull(pull)
}

func (h *gitHub) commit(ctx context.Context, owner, name string, change Change) error {
	base, err := gitHubAnswer(h.client.Git.GetRef(ctx, owner, name, "heads/"+change.Base))
	if err != nil {
		return err
	}
	if base.GetObject().GetSHA() == "" {
		return malformed("the host's answer is not a branch of GitHub", nil)
	}
	branch := github.CreateRef{Ref: "refs/heads/" + change.Branch, SHA: base.GetObject().GetSHA()}
	if _, err = gitHubAnswer(h.client.Git.CreateRef(ctx, owner, name, branch)); err != nil && !alreadyExists(err) {
		return err
	}
	old, sha, err := h.content(ctx, owner+"/"+name, change.Path, change.Branch)
	file := &github.RepositoryContentFileOptions{Message: &change.Title, Content: change.Content, SHA: &sha, Branch: &change.Branch}
	if Is(err, NotFound) && change.Create {
		file.SHA = nil
		_, err = gitHubAnswer(h.client.Repositories.CreateFile(ctx, owner, name, change.Path, file))
		return err
	}
	if err != nil || bytes.Equal(old, change.Content) {
		return err
	}
	_, err = gitHubAnswer(h.client.Repositories.UpdateFile(ctx, owner, name, change.Path, file))
	return err
}

// alreadyExists reports whether GitHub rejected a branch because it exists. Other rejections have the same status.
func alreadyExists(err error) bool {
	return Is(err, Refused) && strings.Contains(err.Error(), "already exists")
}

func gitHubPull(pull *github.PullRequest) (PullRequest, error) {
	if pull.GetNumber() == 0 || pull.GetState() == "" || pull.GetHead().GetRef() == "" || pull.GetBase().GetRef() == "" {
		return PullRequest{}, malformed("the host's answer is not a pull request of GitHub", nil)
	}
	return PullRequest{
		Number: int64(pull.GetNumber()), Open: pull.GetState() == "open", Merged: pull.GetMerged(),
		Head: pull.GetHead().GetRef(), Base: pull.GetBase().GetRef(), URL: pull.GetHTMLURL(),
	}, nil
}
