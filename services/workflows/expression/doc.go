// Package expression evaluates what definitions of workflows compute: expressions in CEL (https://cel.dev), bare where
// a definition wants one (foreach, condition) and as ${{ … }} inside the texts of a step's parameters. Values go in and
// come out as JSON-like Go values. Definitions are written by administrators, but what they compute on is code,
// findings and answers of models: an evaluation ends at a cost, a time and a size, and its result is never evaluated
// again.
package expression
