resource "google_storage_bucket_iam_member" "reports" {
  bucket = "acme-reports"
  role   = "roles/storage.objectViewer"
  # ruleid: palisade.terraform.gcp-public-bucket
  member = "allUsers"
}

resource "google_storage_bucket_iam_binding" "reports" {
  bucket = "acme-reports"
  role   = "roles/storage.objectViewer"
  # ruleid: palisade.terraform.gcp-public-bucket
  members = ["user:ada@acme.test", "allAuthenticatedUsers"]
}

resource "google_storage_bucket_iam_member" "private" {
  bucket = "acme-reports"
  role   = "roles/storage.objectViewer"
  # ok: palisade.terraform.gcp-public-bucket
  member = "user:ada@acme.test"
}

resource "google_storage_bucket_iam_binding" "private" {
  bucket = "acme-reports"
  role   = "roles/storage.objectViewer"
  # ok: palisade.terraform.gcp-public-bucket
  members = ["group:shop@acme.test"]
}

resource "google_cloud_run_service_iam_member" "shop" {
  service = "shop"
  role    = "roles/run.invoker"
  # ok: palisade.terraform.gcp-public-bucket
  member = "allUsers"
}
