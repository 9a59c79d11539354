import { describeTroubledSection } from './troubled-section.testdata.ts';

describeTroubledSection('netlink');
