data "aws_iam_policy_document" "shop" {
  statement {
    # ruleid: palisade.terraform.aws-admin-policy
    actions   = ["*"]
    resources = ["*"]
  }
  statement {
    # ok: palisade.terraform.aws-admin-policy
    actions   = ["s3:GetObject"]
    resources = ["*"]
  }
  statement {
    # ok: palisade.terraform.aws-admin-policy
    actions   = ["*"]
    resources = [aws_s3_bucket.reports.arn]
  }
  statement {
    effect = "Deny"
    # ok: palisade.terraform.aws-admin-policy
    actions   = ["*"]
    resources = ["*"]
  }
}
