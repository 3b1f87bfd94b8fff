resource "aws_s3_bucket_public_access_block" "reports" {
  bucket = aws_s3_bucket.reports.id
  # ruleid: palisade.terraform.aws-public-access-allowed
  block_public_acls = false
  # ok: palisade.terraform.aws-public-access-allowed
  block_public_policy = true
  # ok: palisade.terraform.aws-public-access-allowed
  ignore_public_acls = var.private
  # ok: palisade.terraform.aws-public-access-allowed
  skip_destroy = false
}
