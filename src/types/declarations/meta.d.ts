/** What every object has. */
export interface ObjectMeta {
  name: string;
  /** Absent for cluster-scoped objects. */
  namespace?: string;
  generateName?: string;
  labels?: { [key: string]: string };
  annotations?: { [key: string]: string };
  uid?: string;
  resourceVersion?: string;
  /** Counts the changes of the spec. */
  generation?: number;
  /** RFC 3339. */
  creationTimestamp?: string;
  /** Set while the object is being deleted. */
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  /** RFC 3339; set by opdev when the status changes. */
  lastTransitionTime?: string;
  observedGeneration?: number;
}

/** An object of a kind without declarations of its own. */
export interface AnyObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [key: string]: any;
}
