// The token comes in the fragment, which browsers send to no server. It is exchanged for a cookie that scripts cannot
// read, and removed from the address before anything else, so that no history entry or copied address holds it.
import { endSession, hub, HubError } from "../api/client";

/** True if this tab has opened a session. */
export async function openSession(): Promise<boolean> {
  const token = location.hash.slice(1);
  if (!token) return false;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await hub.session(token);
    return true;
  } catch (error) {
    if (error instanceof HubError && (error.status === 401 || error.status === 403)) endSession();
    // Else the hub is away: the live stream says so, and an earlier cookie may still do.
    return false;
  }
}
