package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"strconv"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// File reads a file through the repository files API.
func (h *gitLab) File(ctx context.Context, repository, path, ref string) ([]byte, error) {
	content, _, err := h.content(ctx, repository, path, ref)
	return content, err
}

// content returns a file and the commit that changed it last, which an update needs.
func (h *gitLab) content(ctx context.Context, repository, path, ref string) ([]byte, string, error) {
	if err := checkPath(path); err != nil {
		return nil, "", err
	}
	file, err := gitLabAnswer(h.client.RepositoryFiles.GetFile(repository, path, &gitlab.GetFileOptions{Ref: &ref}, gitlab.WithContext(ctx)))
	if err != nil {
		return nil, "", err
	}
	if file.Size > maxFile {
		return nil, "", tooLargeFile(path)
	}
	content, err := base64.StdEncoding.DecodeString(file.Content)
	if err != nil || file.BlobID == "" {
		return nil, "", malformed("the host's answer is not a file of GitLab", err)
	}
	return content, file.LastCommitID, nil
}

// ChangedFiles lists the files of a merge request, with their former names. GitLab counts them as text, with a plus
// sign if there are too many.
func (h *gitLab) ChangedFiles(ctx context.Context, repository string, number int64) ([]string, error) {
	request, err := h.mergeRequest(ctx, repository, number)
	if err != nil {
		return nil, err
	}
	if request.IID == 0 {
		return nil, malformed("the host's answer is not a merge request of GitLab", nil)
	}
	total, err := strconv.Atoi(request.ChangesCount)
	if err != nil {
		return nil, errManyFiles
	}
	files := paged(gitLabPages(func(options gitlab.ListOptions) ([]*gitlab.MergeRequestDiff, *gitlab.Response, error) {
		return h.client.MergeRequests.ListMergeRequestDiffs(repository, number, &gitlab.ListMergeRequestDiffsOptions{ListOptions: options}, gitlab.WithContext(ctx))
	}))
	return changedPaths(files, total, func(f *gitlab.MergeRequestDiff) []string { return []string{f.NewPath, f.OldPath} })
}

// Propose creates the branch with the commit, and the merge request, each unless it exists.
func (h *gitLab) Propose(ctx context.Context, repository string, change Change) (PullRequest, error) {
	var open []*gitLabRequest
	_, err := h.read(ctx, http.MethodGet, gitLabRequests(repository), &gitlab.ListProjectMergeRequestsOptions{
		State: gitlab.Ptr("opened"), SourceBranch: &change.Branch, TargetBranch: &change.Base,
	}, &open)
	if open, err = checkList(open, err); err != nil {
		return PullRequest{}, err
	}
	if err := h.commit(ctx, repository, change); err != nil {
		return PullRequest{}, err
	}
	for _, request := range open {
		if pull, err := request.convert(); err != nil || pull.Head == change.Branch {
			return pull, err
		}
	}
	var made gitLabRequest
	if _, err = h.read(ctx, http.MethodPost, gitLabRequests(repository), &gitlab.CreateMergeRequestOptions{
		Title: &change.Title, Description: &change.Text, SourceBranch: &change.Branch, TargetBranch: &change.Base, RemoveSourceBranch: gitlab.Ptr(true),
	}, &made); err != nil {
		return PullRequest{}, err
	}
	return made.convert()
}

// commit adds a commit to the branch. GitLab creates the branch if it does not exist.
func (h *gitLab) commit(ctx context.Context, repository string, change Change) error {
	options := &gitlab.UpdateFileOptions{
		Branch: &change.Branch, Encoding: gitlab.Ptr("base64"), Content: gitlab.Ptr(base64.StdEncoding.EncodeToString(change.Content)),
		CommitMessage: &change.Title,
	}
	old, last, err := h.content(ctx, repository, change.Path, change.Branch)
	switch {
	case Is(err, NotFound):
		options.StartBranch = &change.Base
		if old, last, err = h.content(ctx, repository, change.Path, change.Base); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if bytes.Equal(old, change.Content) {
		return nil
	}
	if last != "" {
		options.LastCommitID = &last
	}
	_, err = gitLabAnswer(h.client.RepositoryFiles.UpdateFile(repository, change.Path, options, gitlab.WithContext(ctx)))
	return err
}
