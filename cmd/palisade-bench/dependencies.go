package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// dependencyFilters are the documented dependency filters, single and combined: rare values, frequent values, and
// values without a match.
var dependencyFilters = []string{
	``, `"name":"parser"`, `"name":"parser-19"`, `"name":"-77"`, `"name":"nothing"`, `"name":"e"`, `"version":"1.2.77"`, `"version":"nothing"`,
	`"repositoryId":[$]`, `"repositoryId":[$],"name":"nothing"`, `"repositoryId":[$],"license":["GPL-3.0-only"]`,
	`"transitivity":["DIRECT"]`, `"transitivity":["UNKNOWN_TRANSITIVITY"]`, `"ecosystem":["npm","pypi"]`, `"ecosystem":["hex"]`, `"ecosystem":["cargo"]`,
	`"lockfilePath":"go.sum"`, `"lockfilePath":"nothing"`, `"license":["MIT"]`, `"license":["Apache-2.0"]`, `"license":["GPL-3.0-only"]`,
	`"license":["LicenseRef-190"]`, `"license":["WTFPL"]`, `"license":["WTFPL","GPL-3.0-only"]`, `"includeArchived":true`,
	`"packageFilters":[{"name":"http-0"}]`, `"packageFilters":[{"name":"json-4001","exactNameMatch":true}]`, `"packageFilters":[{"name":"nothing"},{"name":"none"}]`,
	`"packageFilters":[{"name":"core-19","versionLowerBound":"2.0.0","versionUpperBound":"4.0.0"}]`,
	`"packageFilters":[{"name":"json-4001","exactNameMatch":true,"versionUpperBound":"4.0.0"}]`, `"packageFilters":[{"name":"log","exactVersion":"2.1.12"}]`,
	`"name":"core","ecosystem":["hex"]`, `"name":"cache-8","license":["GPL-3.0-only"]`, `"name":"parser-19","transitivity":["DIRECT"]`,
	// Only the last projects have these, including the largest one.
	`"name":"apple-"`, `"name":"apple-h"`, `"license":["EUPL-1.2"]`, `"ecosystem":["swiftpm"]`, `"ecosystem":["swiftpm","cargo"]`, `"ecosystem":["swiftpm","pub"]`,
	`"repositoryId":[$],"ecosystem":["pub"]`, `"repositoryId":[$],"name":"e"`, `"repositoryId":[&]`, `"repositoryId":[&],"transitivity":["DIRECT"]`,
	`"transitivity":["DIRECT"],"lockfilePath":"Package.resolved"`, `"packageFilters":[{"name":"apple-json"},{"name":"apple-http"}]`,
	`"packageFilters":[{"name":"apple-json","versionLowerBound":"2.0.0"}]`,
	`"packageFilters":[{"name":"json-4001","exactNameMatch":true,"versionUpperBound":"4.0.0"},{"name":"apple-json","versionLowerBound":"2.0.0"},` +
		`{"name":"log","exactNameMatch":true,"versionLowerBound":"1.0.0"},{"name":"core-19","versionUpperBound":"4.0.0"},{"name":"cache-8","exactVersion":"2.1.12"}]`,
	`"ecosystem":["hex"],"license":["WTFPL"]`, `"ecosystem":["maven"],"transitivity":["UNKNOWN_TRANSITIVITY"]`, `"lockfilePath":"go.sum","ecosystem":["hex"]`,
}

// dependencyCases request the packages and the repositories that have them, and the lockfiles of one repository.
func dependencyCases(deploymentID, repositoryID int64) []*filterCase {
	at := fmt.Sprintf("/%d/dependencies", deploymentID)
	var list []*filterCase
	for _, filter := range dependencyFilters {
		filter = strings.ReplaceAll(filter, "$", strconv.FormatInt(repositoryID, 10))
		filter = strings.ReplaceAll(filter, "&", lastTen(repositoryID))
		list = append(list,
			&filterCase{path: at, body: `{"pageSize":100,"dependencyFilter":{` + filter + `}}`},
			&filterCase{path: at + "/repositories", body: `{"dependencyFilter":{` + filter + `}}`},
		)
	}
	return append(list,
		&filterCase{path: at, body: "{}"}, // 1,000
		&filterCase{path: at, body: `{"dependencyFilter":{"name":"-77"}}`},
		&filterCase{path: at, body: `{"dependencyFilter":{"lockfilePath":"go.sum"}}`},
		&filterCase{path: at, body: `{"dependencyFilter":{"ecosystem":["hex"]}}`},
		&filterCase{path: at, body: `{"dependencyFilter":{"license":["GPL-3.0-only"]}}`},
		&filterCase{path: at, body: `{"dependencyFilter":{"name":"parser-1","transitivity":["DIRECT"]}}`},
		&filterCase{path: fmt.Sprintf("%s/repositories/%d/lockfiles", at, repositoryID), body: "{}"},
		&filterCase{path: fmt.Sprintf("%s/repositories/%d/lockfiles", at, repositoryID), body: `{"dependencyFilter":{"name":"json"}}`},
		&filterCase{path: fmt.Sprintf("%s/repositories/%d/lockfiles", at, repositoryID-1), body: "{}"},
		&filterCase{path: fmt.Sprintf("%s/repositories/%d/lockfiles", at, repositoryID-1), body: `{"dependencyFilter":{"transitivity":["DIRECT"]}}`},
	)
}

// measureDependencies stores dependencies and requests lists of them.
func (b *bench) measureDependencies(ctx context.Context) ([]row, error) {
	if b.dependencies == 0 {
		return nil, nil
	}
	deploymentID, err := b.deploymentID(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.fillDependencies(ctx, deploymentID, b.dependencies); err != nil {
		return nil, err
	}
	if err := b.restart(ctx); err != nil { // open connections do not see new statistics
		return nil, err
	}
	var repositoryID int64
	if err := b.db.QueryRowContext(ctx, "SELECT MAX(project_id) FROM dependencies").Scan(&repositoryID); err != nil {
		return nil, err
	}
	return b.measureLists(ctx, "slowest list of dependencies", filterBar, dependencyCases(deploymentID, repositoryID))
}

// lastTen returns the ten repositories before one, joined by commas.
func lastTen(repositoryID int64) string {
	var list []string
	for id := repositoryID - 10; id < repositoryID; id++ {
		list = append(list, strconv.FormatInt(id, 10))
	}
	return strings.Join(list, ",")
}
