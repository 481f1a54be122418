#!/usr/bin/perl
# Classifies flowers by their nearest neighbours. Takes everything from the environment and says nothing but a number:
# DIBS_PARAM_K, DIBS_PARAM_POWER, DIBS_PARAM_WEIGHT in, the share of wrong answers in the file $DIBS_RESULT out.
use strict;
use warnings;
use File::Basename qw(dirname);

my ($k, $power, $weight) = @ENV{qw(DIBS_PARAM_K DIBS_PARAM_POWER DIBS_PARAM_WEIGHT)};
my $file = dirname($0) . "/iris.csv";
open my $data, "<", $file or die "neighbours.pl: $file: $!\n";
my @rows = map { chomp; [split /,/] } <$data>;
shift @rows;    # the names of the columns

my $wrong = 0;
for my $one (@rows) {
    my @near = sort { $a->[0] <=> $b->[0] } map { [distance($one, $_), $_->[4]] } grep { $_ != $one } @rows;
    my %votes;
    $votes{$_->[1]} += $weight eq 'distance' ? 1 / ($_->[0] + 1e-9) : 1 for @near[0 .. $k - 1];
    my ($answer) = sort { $votes{$b} <=> $votes{$a} || $a cmp $b } keys %votes;
    $wrong++ if $answer ne $one->[4];
}
open my $result, '>', $ENV{DIBS_RESULT} or die "neighbours.pl: $ENV{DIBS_RESULT}: $!\n";
printf $result "%.6f\n", $wrong / @rows;

sub distance {
    my ($one, $other) = @_;
    my $sum = 0;
    $sum += abs($one->[$_] - $other->[$_])**$power for 0 .. 3;
    return $sum**(1 / $power);
}
