"""The profiles of clouds plan all of a run, with its results in a bucket; a part of it is made there."""

import re

import pytest
import yaml

from support.checkout import REPOSITORY, copied_repository

pytestmark = pytest.mark.cloud
BUCKET = "my-bucket"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copied_repository(tmp_path_factory.mktemp("cloud"))


@pytest.mark.parametrize("profile", ["kubernetes", "aws-batch"])
def test_a_profile_plans_every_job_with_results_in_the_bucket(profile, checkout, endpoint):
    options = ["--workflow-profile", f"profiles/{profile}", "--storage-s3-endpoint-url", endpoint]
    # The rows of `demo/` would be missing if they were looked for in the bucket.
    planned = checkout.snakemake("--dry-run", *options).stdout
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", planned, re.MULTILINE))
    assert (jobs["generate"], jobs["control_risk"], jobs["write_table"]) == ("3", "3", "24")


@pytest.mark.parametrize(
    ("prefix", "copies"),
    [("", []), ("results/today/", []), ("scratch/", ["--local-storage-prefix", "copies"])],
)
def test_results_in_a_bucket_are_those_on_a_disk(checkout, endpoint, prefix, copies):
    targets = [f"results/smoke/{name}" for name in ("tasks/arithmetic.parquet", "config.yaml")]
    checkout.snakemake(*targets)
    local = {target: (checkout.root / target).read_bytes() for target in targets}
    to = f"s3://{BUCKET}/{prefix}".rstrip("/")
    options = ["--default-storage-provider", "s3", "--default-storage-prefix", to, *copies]
    options += ["--storage-s3-endpoint-url", endpoint]
    checkout.snakemake(*targets, *options)
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    import boto3  # of .venv-cloud alone

    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    stored = {
        target: client.get_object(Bucket=BUCKET, Key=prefix + target)["Body"].read()
        for target in targets
    }
    assert stored == local


def test_the_profile_of_batch_asks_for_gpus_where_that_of_slurm_does():
    def read(name):
        text = (REPOSITORY / f"profiles/{name}/config.yaml").read_text(encoding="utf-8")
        return yaml.safe_load(text)

    batch = read("aws-batch")
    assert batch["set-resources"].keys() == read("slurm")["set-resources"].keys()
    assert batch["set-threads"].keys() == batch["set-resources"].keys()
    from snakemake_executor_plugin_aws_batch.constant import VALID_RESOURCES_MAPPING as KNOWN

    assert 1 in KNOWN[batch["default-resources"]["mem_mb"]]
    for rule, resources in batch["set-resources"].items():
        assert batch["set-threads"][rule] in KNOWN[resources["mem_mb"]]
