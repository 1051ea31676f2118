//! Defines a test for each case that is a file or a folder, so that `cargo test golden::own_apps::flux_oci_charts` runs
//! one of them and a failure names it. A new case needs a line here: `every_case_has_a_test` fails without it.

#![allow(unused_macros, reason = "each crate's tests use some of the lists")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Calls a function with the path of each case of a folder, in a test with the name of the case.
macro_rules! cases {
    ($folder:literal, $check:path: $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $check(&crate::cases::find($folder, stringify!($case)));
            }
        )*

        #[test]
        fn every_case_has_a_test() {
            crate::cases::assert_complete($folder, &[$(stringify!($case)),*]);
        }
    };
}

/// Lists the cases of a folder, with the names of their tests.
fn list(folder: &str) -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.file_stem().unwrap().to_str().unwrap().replace('-', "_"), path)).collect()
}

/// Finds the case that a test is named after.
pub(crate) fn find(folder: &str, name: &str) -> PathBuf {
    let found = list(folder).into_iter().find(|(case, _)| case == name);
    found.unwrap_or_else(|| panic!("{folder} has no case {name}: remove it from tests/cases.rs")).1
}

/// Fails when a case of a folder has no test.
pub(crate) fn assert_complete(folder: &str, tested: &[&str]) {
    let names: BTreeSet<String> = list(folder).into_iter().map(|(name, _)| name).collect();
    let untested: Vec<_> = names.iter().filter(|name| !tested.contains(&name.as_str())).collect();
    assert!(untested.is_empty(), "{folder} has cases that tests/cases.rs does not list: {untested:?}");
}

/// Dumps of clusters, and the rows that Taffrail must show for them.
macro_rules! golden_apps {
    ($check:path) => {
        cases! {
            "crates/apps/tests/golden/apps", $check:
            argo_applicationset_fleet argo_failures argo_multi_source argo_well config_sync_moving
            config_sync_well duplicate_context flux_bad_image flux_depends_on flux_health_check_failed
            flux_in_motion flux_inventory_names flux_kustomization_well flux_malformed_inventory
            flux_oci_bucket_sources flux_source_failed helm_secret_damaged helm_well
            helmrelease_upgrade_failed helmrelease_well kpt_resource_groups label_groups overlap
            sixty_apps terminating
        }
    };
}

/// Taffrail's own cases in the form of `golden_apps`.
macro_rules! own_apps {
    ($check:path) => {
        cases! {
            "crates/taffrail/tests/cases/apps", $check:
            alias_dups argo_app_of_apps argo_destinations argo_health_of_objects argo_more argo_multi
            argo_new argo_renamed_home argo_resources argo_sync_states circles config_sync
            config_sync_children declaring_with_label failed_on_older fleet_alias flux_children
            flux_kubeconfig_self flux_new flux_oci_charts flux_old_apis flux_reasons flux_remote
            flux_self_entry flux_stale_source flux_stalled_alone flux_static_children flux_suspended
            flux_unknown_source helm_configmap_driver helm_more helm_placement helm_states
            helmrelease_history helmrelease_storage hub_down_secret inv_null inventory_shapes keys kpt
            labels labels2 list_dump lists_of_wrong_type mixed_tools no_uid overlap overlap2
            own_words_hold_the_cause partial_dump rollup_order self_managed tie_since waiting_at_rest
            waits_and_remote_failing wrong_cluster_by_svc
        }
    };
}

/// The objects of small clusters, with their expected health and cause.
macro_rules! golden_assess {
    ($check:path) => {
        cases! {
            "crates/status/tests/golden/assess", $check:
            broken_admission_webhook_denies broken_apiservice_without_endpoints broken_bare_pod_failed
            broken_certificate_issuer_missing broken_config_error_secret_missing broken_crashloop
            broken_cronjob_last_run_failed broken_crossplane_managed_resource_refused
            broken_custom_resource_unreadable_generation broken_daemonset_init_image_missing
            broken_failed_before_missing_before_rolling broken_failed_mount_repeated
            broken_flux_kustomization_retries broken_hpa_without_metrics broken_image_pull_backoff
            broken_init_container_crashes broken_invalid_image_name broken_job_backoff_limit_exceeded
            broken_loadbalancer_without_address broken_namespace_stuck_on_a_finalizer broken_node_lost
            broken_oom_killed_repeatedly broken_pvc_deletion_waits_for_pod broken_pvc_lost
            broken_quota_refuses_pods broken_readiness_fails_past_deadline
            broken_statefulset_claim_without_class broken_statefulset_first_pod_crashes
            broken_two_failed_the_longer_speaks broken_unschedulable noisy_apiservice_back_again
            noisy_argo_rollout_just_created noisy_certificate_renewal noisy_crd_with_advisory_conditions
            noisy_cronjob_failed_earlier_last_run_well noisy_cronjob_suspended
            noisy_custom_resource_without_status_for_days noisy_daemonset_on_a_node_not_ready
            noisy_deployment_evicted_pods noisy_deployment_fix_rolls_while_old_crashes
            noisy_deployment_killed_once_for_memory noisy_deployment_paused
            noisy_deployment_restarts_long_ago noisy_deployment_rolling_terminating_pods
            noisy_deployment_scaled_to_zero noisy_deployment_unschedulable_for_9_seconds
            noisy_flux_kustomization_suspended noisy_hpa_at_maximum noisy_ingress_without_address
            noisy_job_complete_after_a_failed_try noisy_job_pod_disrupted_and_ignored
            noisy_job_retries_with_backoff_left noisy_node_lost_pods_replaced
            noisy_overlapping_labels_other_crashes noisy_pdb_allows_no_disruption noisy_pod_completed
            noisy_pvc_bound_resize_pending noisy_pvc_waits_for_first_consumer
            noisy_service_endpoint_terminating noisy_statefulset_rolling_update
        }
    };
}

/// Taffrail's own cases in the form of `golden_assess`.
macro_rules! own_assess {
    ($check:path) => {
        cases! {
            "crates/taffrail/tests/cases/assess", $check:
            broken_apiservice_discovery broken_apiservice_pod_crashes broken_apiservice_service_missing
            broken_apps_v1beta1 broken_bare_pod_evicted broken_bare_pod_oom broken_certificate_challenge
            broken_certificate_issuer_not_ready broken_certificate_no_request_issuer_missing
            broken_claim_missing broken_cluster_deletion broken_cluster_deletion_reference
            broken_core_event_series broken_cr_deployment_image broken_cr_pod_crashes
            broken_cr_reference_missing broken_cr_stalled broken_crash_on_lost_node broken_crash_running
            broken_crd_deletion broken_crd_names broken_cronjob_failed_next_runs
            broken_cronjob_failed_pod broken_cronjob_manual_failed broken_cronjob_name_order
            broken_cronjob_v1beta1 broken_crossplane_claim broken_crossplane_claim_deletion
            broken_daemonset_crash_one broken_daemonset_lost_and_crash broken_daemonset_ondelete
            broken_daemonset_pod_rejected broken_daemonset_quota broken_daemonset_two_lost
            broken_daemonset_unschedulable broken_daemonset_zero_allowed broken_deadline_probe
            broken_ephemeral_claim broken_event_without_uid broken_extensions_both
            broken_extensions_deployment broken_extensions_twins broken_failed_attach
            broken_failed_mount_new_event broken_failed_mount_thrice broken_flux_receiver
            broken_foreground_deletion_node_lost broken_gitrepository
            broken_hard_cause_speaks_before_older broken_hpa_behind_crashing
            broken_hpa_failedcomputemetricsreplicas broken_hpa_failedgetcontainerresourcemetric
            broken_hpa_failedgetexternalmetric broken_hpa_failedgetobjectmetric
            broken_hpa_failedgetpodsmetric broken_hpa_failedgetscale broken_hpa_failedupdatescale
            broken_hpa_third_minute broken_hpa_two broken_hpa_v1_annotation broken_hpa_v2beta2
            broken_hr_chart broken_hr_dependency broken_hr_upgrade broken_init_oom
            broken_job_config_error broken_job_crash_no_tries broken_job_deadline
            broken_job_failed_index broken_job_failure_policy broken_job_image broken_job_node_lost
            broken_job_onfailure_limit_zero broken_job_quota broken_job_sidecar_image
            broken_job_terminating_on_lost_node broken_job_unschedulable broken_ks_build
            broken_ks_dependency broken_ks_dependency_chain broken_ks_dependency_missing
            broken_ks_dependency_old_words broken_ks_dependency_with_retry broken_ks_health_check_chain
            broken_ks_progressing_failing broken_ks_retry broken_ks_source broken_ks_stalled
            broken_ks_status_generation_behind broken_ks_suspended_failing broken_lb_none
            broken_limit_range broken_longest_across_kinds broken_longest_hard_cause
            broken_machine_infrastructure broken_machine_v1beta2_apigroup broken_multi_attach
            broken_multi_attach_node_lost broken_multi_attach_own_old_pod broken_namespace_discovery
            broken_namespace_pvc_pod_lost_node broken_new_replicaset_refused broken_no_revision
            broken_node_declared_lost broken_node_lost broken_node_lost_no_taint
            broken_node_lost_replacement_unschedulable broken_node_taint_unreachable
            broken_not_triggered_scale_up broken_notfound broken_one_of_three_crashes
            broken_oom_twice_running broken_oom_twice_terminated_now broken_order_notfound_over_unknown
            broken_order_terminating_over_inprogress broken_order_unknown_over_terminating
            broken_paused_crashes broken_paused_half_rolled broken_paused_one_lacks
            broken_pod_failedmount_lost broken_pod_no_creation broken_pod_security
            broken_pod_waits_claim_unschedulable_no_cond broken_pods_rejected_past_deadline
            broken_pull_secret_missing broken_pv_bound broken_pvc_class_missing
            broken_pvc_held_by_snapshot broken_pvc_immediate broken_pvc_lost_no_event
            broken_pvc_static_no_volume broken_pvc_used broken_pvc_used_by_finished
            broken_pvc_volume_missing broken_pvc_wffc_selected broken_pvc_wffc_used
            broken_quota_and_starting_pod broken_quota_condition_and_event broken_quota_condition_only
            broken_quota_event_only broken_quota_scale_up broken_replicaset_declared
            broken_replicaset_refused broken_revision_ten broken_rollback_crashes
            broken_rollout_generation_text broken_rollout_new_image broken_second_init_image
            broken_service_account_missing broken_sidecar_crashes broken_sidecar_image broken_since_cron
            broken_since_evidence broken_since_evidence_2 broken_since_hpa broken_since_job_end
            broken_since_lost_evidence broken_since_stalled_not_ready broken_statefulset_claim_lost
            broken_statefulset_claim_quota broken_statefulset_last_crashes broken_statefulset_node_lost
            broken_statefulset_node_lost_terminating broken_statefulset_ondelete_crashes
            broken_statefulset_parallel broken_statefulset_quota broken_statefulset_quota_new_event
            broken_statefulset_two_causes broken_statefulset_update_crashes broken_static_pod
            broken_tie_names broken_triggered_scale_up_long_ago broken_two_containers
            broken_unschedulable_16s broken_unschedulable_nominated broken_unschedulable_with_wffc_claim
            broken_waiting_createcontainerconfigerror broken_waiting_createcontainererror
            broken_waiting_errimagepull broken_waiting_imagepullbackoff broken_waiting_invalidimagename
            broken_webhook_down flag_cron mislead_class_not_dumped mislead_hpa_while_target_rolls
            mislead_mount_other_missing mislead_reason_without_message mislead_secret_not_dumped
            mislead_volume_not_dumped noisy_apiservice_local noisy_bare_pod_10s
            noisy_cr_current_though_pod_crashes noisy_cr_empty_status noisy_cr_has_status
            noisy_cr_no_crd noisy_cr_no_status_4m noisy_cr_no_status_5m noisy_cr_no_subresource
            noisy_cr_other_crd noisy_cr_pod_not_controlled noisy_cr_ready_false
            noisy_cr_ready_pod_crashes noisy_cr_stale_stalled noisy_cr_subresource_in_other_version
            noisy_crd_installing noisy_cronjob_by_schedule noisy_cronjob_foreign_job
            noisy_cronjob_last_ok noisy_cronjob_never_ran noisy_cronjob_running_job_in_trouble
            noisy_cronjob_suspended_failed noisy_daemonset_evicted
            noisy_daemonset_node_not_ready_kubelet noisy_daemonset_ondelete_old noisy_daemonset_one_lost
            noisy_daemonset_percent_rounds_up noisy_daemonset_quota_over noisy_daemonset_stale
            noisy_daemonset_two_lost_half_allowed noisy_deletion_for_days noisy_deployment_warnings
            noisy_ephemeral_container_crashes noisy_ephemeral_container_image
            noisy_err_image_never_pull_not_listed noisy_event_of_earlier_pod noisy_event_twins
            noisy_events_before_it_was_good noisy_evicted_and_one_starting noisy_extra_pods
            noisy_failed_job_terminating noisy_failed_mount_old noisy_failed_mount_then_started
            noisy_failed_mount_twice noisy_first_crash_before_backoff noisy_flux_alert
            noisy_flux_terminating noisy_helmrepository_oci noisy_hpa_backoff noisy_hpa_disabled
            noisy_hpa_events_only noisy_hpa_invalid_selector noisy_hpa_limited_failed
            noisy_hpa_second_minute noisy_hr_upgrading noisy_ingress noisy_job_crash_tries_left
            noisy_job_failure_target noisy_job_index_failed_others_run noisy_job_node_lost_replaced
            noisy_job_onfailure_failed_and_restarts noisy_job_oom_tries_left noisy_job_parallelism_zero
            noisy_job_quota_over noisy_job_resumed noisy_job_running noisy_job_success_policy
            noisy_job_suspended noisy_job_suspended_no_condition noisy_job_suspended_with_failures
            noisy_job_terminating_crash noisy_knative_service_twin noisy_knative_service_waits
            noisy_ks_dependency_now_ready noisy_ks_dependency_progressing noisy_ks_new
            noisy_ks_progressing noisy_ks_ready_reconciling noisy_ks_stale noisy_ks_stale_failed
            noisy_ks_suspended_stale noisy_lb_event_of_earlier noisy_lb_hostname noisy_lb_ip
            noisy_lb_normal_event noisy_multi_attach_first_minute noisy_namespace_active
            noisy_node_back_taint_left noisy_node_cordoned noisy_node_declared_not_ready
            noisy_node_lost_replacement_starts noisy_node_not_ready noisy_not_then_triggered
            noisy_old_replicaset_image noisy_old_replicaset_refused noisy_oom_last_week
            noisy_oom_once_not_ready noisy_optional_secret noisy_owner_without_controller
            noisy_paused_at_zero noisy_paused_new_rs_at_zero noisy_paused_new_template
            noisy_pdb_insufficient noisy_pod_phase_unknown noisy_pod_ready_warnings noisy_pod_stale
            noisy_pod_terminating noisy_probe_before_deadline noisy_pv_claim_gone
            noisy_pv_external_finalizer noisy_pv_failed_not_listed noisy_pvc_default_class_wffc
            noisy_pvc_not_held_by_unscheduled noisy_pvc_resize_failed noisy_pvc_wffc
            noisy_pvc_wffc_finished_pod noisy_pvc_wffc_other_namespace_pod
            noisy_pvc_wffc_pod_terminating noisy_readiness_gate noisy_replicafailure_left_on_deployment
            noisy_rollback_leaves_crashing noisy_rollout_old_crashes noisy_rs_of_earlier_deployment
            noisy_run_container_error_not_listed noisy_sandbox_fails noisy_scheduling_gated
            noisy_service_external_name noisy_service_headless noisy_service_no_endpoints
            noisy_service_nodeport noisy_stale_generation_crash noisy_stale_generation_deadline
            noisy_statefulset_complete_with_failed_left noisy_statefulset_node_not_ready
            noisy_statefulset_ondelete_old_revision noisy_statefulset_ondelete_stale
            noisy_statefulset_ondelete_starting noisy_statefulset_partition
            noisy_statefulset_pod_evicted noisy_statefulset_pod_terminating
            noisy_statefulset_probe_for_days noisy_statefulset_quota_over
            noisy_statefulset_scale_up_old_quota noisy_statefulset_stale
            noisy_statefulset_terminating_crashed noisy_statefulset_terminating_finalizer
            noisy_terminating_crashing_pod noisy_triggered_scale_up noisy_triggered_scale_up_new_event
            noisy_twin_in_other_namespace noisy_unschedulable_14s noisy_zero_with_hpa_and_service
        }
    };
}

/// Incidents that users reported, in the form of `golden_assess`.
macro_rules! incidents {
    ($check:path) => {
        cases! {
            "crates/taffrail/tests/cases/incidents", $check:
            broken_admission_binding_without_its_policy broken_argo_rollout_paused_at_canary_step
            broken_clusterversion_update_failing broken_cnpg_volume_full
            broken_crash_loop_between_two_crashes broken_cronjob_active_job_cannot_pull
            broken_cronjob_last_run_left_no_job broken_crossplane_managed_resource_not_synced
            broken_crossplane_provider_crashes broken_daemonset_ondelete_sidecar_crashes
            broken_elasticsearch_max_map_count broken_external_secret_store_invalid
            broken_flux_gitrepository_ssh_handshake broken_flux_kustomization_build_fails_after_edit
            broken_flux_kustomization_dependency_gone broken_ingress_its_controller_warns
            broken_job_crash_loops_with_tries_left broken_kafkatopic_not_looked_at_yet
            broken_karpenter_has_nominated_a_node broken_leaderworkerset_finds_no_gpus
            broken_node_not_ready_but_its_kubelet_speaks broken_one_crash_of_a_long_lived_pod
            broken_pod_behind_a_scheduling_gate broken_preemptor_waits_for_its_victim
            broken_prometheus_out_of_memory broken_pytorchjob_worker_failed
            broken_recreate_held_by_a_pod_on_a_lost_node broken_rolling_update_multi_attach
            broken_scale_up_under_way broken_scale_up_was_taken_back
            broken_velero_storage_location_unavailable noisy_admission_policy_with_type_warnings
            noisy_argo_rollout_paused_on_its_stable_revision noisy_argo_workflowtemplate_just_created
            noisy_certificate_renewal_failed_still_valid noisy_cluster_api_cluster_many_false_conditions
            noisy_cnpg_continuous_archiving_fails noisy_cronjob_keeps_no_successes
            noisy_cronjob_long_run_skips_later_ones noisy_cronjob_suspended_after_a_failed_run
            noisy_crossplane_resource_paused noisy_custom_resource_stale_degraded_condition
            noisy_daemonset_ondelete_old_template noisy_datasciencecluster_components_removed
            noisy_deployment_paused_with_a_new_template
            noisy_deployment_quota_refused_until_old_pods_left
            noisy_flux_kustomization_suspended_generation_ahead noisy_hpa_in_its_second_minute
            noisy_ingress_warnings_are_over noisy_job_complete_sidecar_killed_mount_warnings
            noisy_job_suspended_for_emergencies noisy_karpenter_nodeclaim_drifted
            noisy_keda_scaled_to_zero noisy_knative_revision_without_traffic
            noisy_kueue_job_waits_for_quota noisy_loadbalancer_update_of_hosts_failed
            noisy_node_cordoned_with_detector_conditions noisy_old_pod_cannot_be_killed
            noisy_olm_subscription_catalogs_healthy noisy_pods_left_by_node_shutdowns
            noisy_strimzi_kafka_with_warnings
        }
    };
}
