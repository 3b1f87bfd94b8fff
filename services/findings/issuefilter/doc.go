// Package issuefilter converts the filter message of the second API (issues.v1.IssuesFilter of the contract) to
// conditions on findings. Issues, AI tasks and memories use it.
//
// A filter becomes one statement. Names are looked up by subqueries. Policies of the schema do not apply to subqueries,
// so each subquery has its own condition on the deployment. Policies do apply to the query that uses the conditions.
package issuefilter
