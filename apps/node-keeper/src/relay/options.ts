import { option, text } from '@unbounded/config';
import { RELAY_STATE, RELAY_UNIT } from '@unbounded/config/ownership';

export const relayOptions = {
  relayUnit: option(text(RELAY_UNIT), 'File in which the agent says what the relay’s proxies are to do.'),
  relayState: option(text(RELAY_STATE), 'File in which they say what they have come to.'),
};
