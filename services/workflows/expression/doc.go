// Package expression evaluates the expressions of workflow definitions. They are CEL (https://cel.dev): bare in foreach
// and condition, and as ${{ … }} inside the texts of a step's parameters. Inputs and results are JSON-like Go values.
// Administrators write definitions, but their data is code, findings and answers of models. So an evaluation has limits
// for cost, time and size, and its result is never evaluated again.
package expression
